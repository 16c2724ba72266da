"""Who competes on which server, and with which settings.

Peers live in an environment of their own (`make bench` builds it). One that is not there is
reported as not measured.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from typing import Any

from benchmarks.contenders.served import Served
from benchmarks.processes import ROOT

PYTHON = os.environ.get("PENSTOCK_BENCH_PYTHON", str(ROOT / ".venv-bench" / "bin" / "python"))
PACKAGES = (
    *("saq", "taskiq-redis", "dramatiq", "streaq", "arq", "pgqueuer", "procrastinate"),
    *("llama-index-core", "llama-index-vector-stores-postgres", "dbos"),
)
VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
LEASE_SECONDS = 3
"""Of peers, where a takeover is to be seen: longer than the nap of `takeover.py`, because some do
not renew. Ours does, and may have a shorter one."""


@cache
def versions() -> dict[str, str]:
    """The peers that are installed."""
    try:
        command = [PYTHON, "-c", VERSIONS, *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        return {}
    found: dict[str, str] = json.loads(done.stdout)
    return found


def penstock() -> Served:
    return Served(
        "penstock",
        "penstock_server",
        fastest=[{}, _worker(internal_queue=500)],
        leased=_worker(lease_seconds=1.0),
    )


def on_redis() -> list[Served]:
    return [
        _peer(
            "SAQ",
            "saq",
            "saq_redis",
            base={**_worker(concurrency=10), "job": {"retries": 3}},
            fastest=[_worker(concurrency=count) for count in (10, 50)],
            # One at a time: the server hands jobs to the idle readers of a frozen process, too.
            leased={
                **_worker(concurrency=1, timers={"sweep": 1}),
                "job": {"retries": 3, "timeout": 60, "heartbeat": LEASE_SECONDS},
            },
            remark="sweeps once a minute what is past its timeout (10 s)",
        ),
        _peer(
            "taskiq",
            "taskiq-redis",
            "taskiq_redis",
            base={**_worker(max_async_tasks=10), "broker": "stream"},
            fastest=[
                {**_worker(max_async_tasks=100), "broker": "stream"},
                {**_worker(max_async_tasks=100), "broker": "list"},
                {**_worker(max_async_tasks=10), "broker": "stream"},
            ],
            leased={
                **_worker(max_async_tasks=10),
                "broker": "stream",
                "options": {"idle_timeout": LEASE_SECONDS * 1000},
            },
            remark="the stream broker; claims what was idle for 10 minutes when other work comes",
        ),
        _peer(
            "dramatiq",
            "dramatiq",
            "dramatiq_redis",
            base=_worker(worker_threads=10),
            fastest=[_worker(worker_threads=count) for count in (1, 4, 8)],
            prompt=_worker(worker_threads=10, worker_timeout=10),
            leased={
                **_worker(worker_threads=10),
                "options": {
                    "heartbeat_timeout": LEASE_SECONDS * 1000,
                    "maintenance_chance": 1_000_000,
                },
            },
            remark="takes back after a minute without heartbeat, at one call in a thousand",
        ),
        _peer(
            "streaq",
            "streaq",
            "streaq_redis",
            base=_worker(concurrency=10),
            fastest=[_worker(concurrency=count) for count in (16, 64)],
            leased=_worker(concurrency=10, idle_timeout=LEASE_SECONDS),
            remark="claims what was idle for 60 s",
        ),
        _peer(
            "arq",
            "arq",
            "arq_redis",
            base=_worker(max_jobs=10),
            fastest=[_worker(max_jobs=count, poll_delay=0.01) for count in (10, 100)],
            prompt=_worker(max_jobs=10, poll_delay=0.01),
            leased=_worker(max_jobs=10, job_timeout=LEASE_SECONDS),
            remark="takes a job again after its timeout (300 s) and 10 s",
        ),
    ]


def on_postgres() -> list[Served]:
    return [
        _peer(
            "PgQueuer",
            "pgqueuer",
            "pgqueuer_postgres",
            base=_worker(batch_size=5, max_concurrent_tasks=10),
            fastest=[_worker(batch_size=size) for size in (50, 200, 500)],
            prompt=_worker(batch_size=10),
            leased=_worker(batch_size=10, heartbeat_timeout=LEASE_SECONDS, dequeue_timeout=1),
            remark="takes a job again after 30 s without heartbeat",
        ),
        _peer(
            "procrastinate",
            "procrastinate",
            "procrastinate_postgres",
            base=_worker(concurrency=10),
            fastest=[_worker(concurrency=count) for count in (10, 50)],
            leased=_worker(
                concurrency=10,
                update_heartbeat_interval=LEASE_SECONDS / 4,
                stalled_worker_timeout=LEASE_SECONDS,
            ),
            remark="with the task from its documentation that retries what is stalled for 30 s",
        ),
    ]


def _peer(name: str, package: str, module: str, **settings: Any) -> Served:
    missing = "" if package in versions() else "not installed"
    return Served(name, module, PYTHON, missing, **settings)


def _worker(**options: Any) -> dict[str, Any]:
    return {"worker": options}
