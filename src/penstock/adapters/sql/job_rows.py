"""Converts rows to jobs and changes, shared by all SQL queues."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from penstock.adapters.sql.dialect import Row
from penstock.adapters.sql.lanes import LaneRows, why_waiting
from penstock.lanes.view import clock
from penstock.model.change import Change
from penstock.model.job import Job, JobState, Priority, Record, parse_history
from penstock.model.job_log import parse_log
from penstock.model.payload import read_json, read_payload
from penstock.ports.operators import KindCounts
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, NewJob, NewJobs


async def read_jobs(lanes: LaneRows, condition: str, **values: Any) -> list[Job]:
    """The jobs for which `condition` (what follows SELECT ... FROM jobs) holds, with what they
    wait for."""
    tx = lanes.tx
    rows = await tx.fetch(f"SELECT {{job_columns}} FROM penstock.jobs {condition}", **values)
    served: set[str] = set()
    reasons: dict[int, str] = {}
    if any(row["state"] == "queued" for row in rows):
        served = {kind for (kind,) in await tx.fetch("served_kinds", now=tx.now)}
        if waiting := _in_lines(rows):
            reasons = await why_waiting(lanes, waiting)
    return [_job_of(row, served, reasons, tx.now) for row in rows]


def _in_lines(rows: Sequence[Row]) -> list[Row]:
    """The rows of jobs that wait in the line of a lane."""
    return [row for row in rows if row["ready"] and row["lane"] not in (NO_LANE, UNKNOWN_LANE)]


def _job_of(row: Row, served: Container[str], lanes: Mapping[int, str], now: float) -> Job:
    """The job in a row of `job_columns`. `served` are the kinds that have a worker process, `lanes`
    says, by seq, why a job has to wait in its line."""
    state = JobState(row["state"])
    runs = state is JobState.RUNNING
    return Job(
        id=row["id"],
        kind=row["kind"],
        payload=read_payload(row["payload"]),
        state=state,
        tenant=row["tenant"],
        priority=Priority(row["priority"]),
        lane=None if row["lane"] in (NO_LANE, UNKNOWN_LANE) else row["lane"],
        key=row["key"],
        log=row["log"],
        parent_id=row["parent_id"],
        rerun_of=row["rerun_of"],
        enqueued_at=row["enqueued_at"],
        run_at=row["run_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        deadline=row["deadline"],
        timeout=row["timeout"],
        max_retries=row["max_retries"],
        attempts=row["attempts"],
        releases=row["releases"],
        progress=row["progress"],
        message=row["message"],
        result=None if row["result"] is None else read_json(row["result"]),
        error=None if row["error"] is None or runs else Record(read_json(row["error"])),
        history=parse_history(row["history"]),
        lines=[Record(line) for line in parse_log(row["lines"])],
        waiting_for=_waiting_for(row, served, lanes, now) if state is JobState.QUEUED else None,
    )


def _waiting_for(row: Row, served: Container[str], lanes: Mapping[int, str], now: float) -> str:
    kind, run_at, ready, message = row["kind"], row["run_at"], row["ready"], row["message"]
    if not ready and run_at > now:
        due = clock(run_at)
        return f"its time, {due}" + (f" ({message})" if message else "")
    if kind not in served:
        return f"a worker process that handles kind {kind!r}"
    return lanes.get(row["seq"], "a worker")


def kind_counts(rows: Iterable[Sequence[Any]]) -> list[KindCounts]:
    """From kind, state, how many, and when the first of them was enqueued."""
    states: dict[str, dict[JobState, int]] = {}
    oldest: dict[str, float] = {}
    for kind, state, count, first in rows:
        states.setdefault(kind, {})[JobState(state)] = count
        if state == "queued":
            oldest[kind] = first
    return [KindCounts(kind, states[kind], oldest.get(kind)) for kind in sorted(states)]


def new_job(batch: NewJobs, item: NewJob, now: float) -> Job:
    """The job as it stands right after it was stored."""
    run_at = now if batch.run_at is None else max(batch.run_at, now)
    return Job(
        id=item.id,
        kind=batch.kind,
        payload=json.loads(item.payload) if item.decoded is None else item.decoded,
        state=JobState.QUEUED,
        tenant=batch.tenant,
        priority=batch.priority,
        lane=None if item.lane in (NO_LANE, UNKNOWN_LANE) else item.lane,
        key=item.key,
        log=batch.log,
        parent_id=batch.parent_id,
        rerun_of=batch.rerun_of,
        enqueued_at=now,
        run_at=run_at,
        deadline=batch.deadline,
        timeout=batch.timeout,
        max_retries=batch.max_retries,
    )


def change_of(row: Sequence[Any]) -> Change:
    """The entry in a row of log, version, at, what, job_id, data."""
    log, version, at, what, job_id, data = row
    return Change(log, version, at, what, job_id, json.loads(data))
