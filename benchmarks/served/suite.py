"""Every measure on one server: a section of the report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import Result
from benchmarks.served import death, peers, speed, takeover
from benchmarks.served.arena import Arena
from benchmarks.served.servers import Postgres, Valkey
from benchmarks.sizes import Sizes


def on_redis(sizes: Sizes, folder: Path) -> list[Result]:
    with Valkey() as server:
        arena = Arena(server, peers.penstock(), peers.on_redis(), sizes, folder)
        return _every(arena, jobs=4, enqueue=1.5, connections=5)


def on_postgres(sizes: Sizes, folder: Path) -> list[Result]:
    with Postgres() as server:
        arena = Arena(server, peers.penstock(), peers.on_postgres(), sizes, folder)
        return _every(arena, jobs=1.2, enqueue=1.5, connections=7)


def _every(arena: Arena, *, jobs: float, enqueue: float, connections: int) -> list[Result]:
    """The targets: so many times the best peer, and at most so many connections."""
    return [
        speed.jobs(arena, jobs),
        speed.enqueue(arena, enqueue),
        *speed.latency(arena),
        death.connections(arena, connections),
        *death.recovery(arena),
        death.elsewhere(arena),
        takeover.late_writes(arena, after_the_end=False),
        takeover.late_writes(arena, after_the_end=True),
    ]
