"""What scripts answer, as jobs and leases."""

from __future__ import annotations

import json
import time
from collections.abc import Container, Sequence
from datetime import datetime
from typing import Any

from penstock.adapters.redis.clock import Clock
from penstock.model.job import Job, JobState, Priority, Record, parse_history
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Lease, NewJob, NewJobs, ProcessInfo

Reply = Sequence[Any]


def lease(told: Reply, clock: Clock) -> Lease:
    """See `pick.told` in lua/common/pick.lua for the order; '' is none."""
    seq, job_id, kind, tenant, payload, priority, lane, key, task, parent_id = told[:10]
    at, run_at, deadline, timeout, max_retries, attempts, crashes, releases, token = told[10:19]
    history, start_at, void_at = told[19:]
    return Lease(
        int(seq),
        job_id,
        kind,
        tenant,
        payload,
        int(priority),
        lane,
        key or None,
        task or None,
        parent_id or None,
        float(at),
        float(run_at),
        float(deadline) if deadline else None,
        float(timeout) if timeout else None,
        int(max_retries) if max_retries else None,
        int(attempts),
        int(crashes),
        int(releases),
        int(token),
        history,
        clock.here(float(start_at)) if start_at else 0.0,
        clock.here(float(void_at)) if void_at else 0.0,
    )


def jobs(view: Reply) -> list[Job]:
    """See `view.jobs` in lua/common/view.lua."""
    found, served = view
    kinds = {kind for text in served for kind in json.loads(text)}
    return [_job(entry, kinds) for entry in found]


def table(flat: Reply) -> dict[str, str]:
    """A hash as the server tells it: names and values in turn. An empty value is none."""
    return {name: value for name, value in zip(flat[::2], flat[1::2], strict=True) if value != ""}


def _job(entry: Reply, served: Container[str]) -> Job:
    flat, payload, result, history, scheduled = entry
    row = table(flat)
    state = JobState(row["state"])
    lane = row.get("lane", NO_LANE)
    return Job(
        id=row["id"],
        kind=row["kind"],
        payload=json.loads(payload),
        state=state,
        tenant=row["tenant"],
        priority=Priority(int(row["priority"])),
        lane=None if lane in (NO_LANE, UNKNOWN_LANE) else lane,
        key=row.get("key"),
        task=row.get("task"),
        parent_id=row.get("parent_id"),
        enqueued_at=float(row["at"]),
        run_at=float(row["run_at"]),
        started_at=_number(row, "started_at"),
        finished_at=_number(row, "finished_at"),
        deadline=_number(row, "deadline"),
        timeout=_number(row, "timeout"),
        max_retries=int(row["max_retries"]) if "max_retries" in row else None,
        attempts=int(row.get("attempts", 0)),
        releases=int(row.get("releases", 0)),
        progress=float(row.get("progress", 0)),
        message=row.get("message", ""),
        result=json.loads(result) if result else None,
        error=Record(json.loads(row["error"])) if "error" in row else None,
        history=parse_history(history),
        waiting_for=_waiting_for(row, bool(scheduled), served) if state == "queued" else None,
    )


def _number(row: dict[str, str], name: str) -> float | None:
    return float(row[name]) if name in row else None


def _waiting_for(row: dict[str, str], scheduled: bool, served: Container[str]) -> str:
    run_at = float(row["run_at"])
    if scheduled and run_at > time.time():
        due = datetime.fromtimestamp(run_at).astimezone().isoformat(timespec="seconds")
        return f"its time, {due}" + (f" ({row['message']})" if "message" in row else "")
    if row["kind"] not in served:
        return f"a worker process that handles kind {row['kind']!r}"
    return "a worker"


def new_job(batch: NewJobs, item: NewJob, now: float) -> Job:
    """The job as it stands right after it was stored."""
    return Job(
        id=item.id,
        kind=batch.kind,
        payload=json.loads(item.payload) if item.decoded is None else item.decoded,
        state=JobState.QUEUED,
        tenant=batch.tenant,
        priority=batch.priority,
        lane=None if item.lane in (NO_LANE, UNKNOWN_LANE) else item.lane,
        key=item.key,
        task=batch.task,
        parent_id=batch.parent_id,
        enqueued_at=now,
        run_at=now if batch.run_at is None else max(batch.run_at, now),
        deadline=batch.deadline,
        timeout=batch.timeout,
        max_retries=batch.max_retries,
    )


def process(flat: Reply) -> ProcessInfo:
    row = table(flat)
    return ProcessInfo(
        id=row["id"],
        host=row["host"],
        pid=int(row["pid"]),
        kinds=json.loads(row["kinds"]),
        max_workers=int(row["max_workers"]),
        joined_at=float(row["joined_at"]),
        heartbeat_at=float(row["heartbeat_at"]),
        lease_until=float(row["lease_until"]),
        status=json.loads(row["status"]),
    )
