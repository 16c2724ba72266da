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
from penstock.ports.steps import SLEEP_WAIT, awaited_signal, has_end, signal_reason

_PLAIN = (
    *("id", "kind", "tenant", "key", "debounce_key", "log", "parent_id", "rerun_of"),
    *(
        "enqueued_at",
        "run_at",
        "started_at",
        "finished_at",
        "deadline",
        "timeout",
        "max_retries",
        "attempts",
        "releases",
    ),
    *("progress", "message"),
)
"""Columns that are stored as a job has them."""


async def read_jobs(lanes: LaneRows, condition: str, **values: Any) -> list[Job]:
    """The jobs for which `condition` (what follows SELECT ... FROM jobs) holds, with what they
    wait for."""
    found = f"SELECT {{job_columns}} FROM penstock.jobs {condition}"
    return await jobs_in(lanes, await lanes.tx.fetch(found, **values))


async def jobs_in(lanes: LaneRows, rows: Sequence[Row]) -> list[Job]:
    """The jobs in rows of `job_columns`, with what they wait for."""
    tx = lanes.tx
    served: set[str] = set()
    reasons: dict[int, str] = {}
    if any(row["state"] == "queued" for row in rows):
        served = {kind for (kind,) in await tx.fetch("served_kinds", now=tx.now)}
        if waiting := _in_lines(rows):
            reasons = await why_waiting(lanes, waiting)
        if any(row["ready"] > 2 for row in rows):
            from penstock.adapters.sql import budgets  # few queues have any

            reasons |= await budgets.reasons(tx, rows)
    return [_job_of(row, served, reasons, tx.now) for row in rows]


def _in_lines(rows: Sequence[Row]) -> list[Row]:
    """The rows of jobs that wait in the line of a lane."""
    return [row for row in rows if row["ready"] and row["lane"] not in (NO_LANE, UNKNOWN_LANE)]


def _job_of(row: Row, served: Container[str], lanes: Mapping[int, str], now: float) -> Job:
    """The job in a row of `job_columns`. `served` are the kinds that have a worker process, `lanes`
    says, by seq, why a job has to wait in its line."""
    state = JobState(row["state"])
    runs = state is JobState.RUNNING
    job = Job(
        **{name: row[name] for name in _PLAIN},
        payload=read_payload(row["payload"]),
        state=state,
        priority=Priority(row["priority"]),
        lane=None if row["lane"] in (NO_LANE, UNKNOWN_LANE) else row["lane"],
        result=None if row["result"] is None else read_json(row["result"]),
        error=None if row["error"] is None or runs else Record(read_json(row["error"])),
        history=parse_history(row["history"]),
        lines=[Record(line) for line in parse_log(row["lines"])],
    )
    if state is JobState.QUEUED:
        wait = None if row["ready"] else row["waits_lane"] or ""
        job.waiting_for = waiting_for(job, wait, served, lanes.get(row["seq"]), now)
    return job


def waiting_for(
    job: Job, wait: str | None, served: Container[str], lane: str | None, now: float
) -> str:
    """What a queued job waits for. `wait`: of a scheduled job, the other lane, sleep or signal that
    it waits for, or ""; `lane`: why it has to wait in the line of its lane."""
    if wait is not None and job.run_at > now:
        signal = awaited_signal(wait)
        if signal is not None:
            end = f" until {clock(job.run_at)}" if has_end(job.run_at) else ""
            return signal_reason(signal) + end
        why = "sleeps" if wait == SLEEP_WAIT else job.message
        if job.debounce_key is not None and not job.attempts:
            why = why or "debounced"
        return f"its time, {clock(job.run_at)}" + (f" ({why})" if why else "")
    if job.kind not in served:
        return f"a worker process that handles kind {job.kind!r}"
    return lane or "a worker"


def kind_counts(rows: Iterable[Sequence[Any]]) -> list[KindCounts]:
    """From kind, state, how many, and since when the first of them could run."""
    states: dict[str, dict[JobState, int]] = {}
    oldest: dict[str, float] = {}
    for kind, state, count, first in rows:
        states.setdefault(kind, {})[JobState(state)] = count
        if state == "queued" and first is not None:
            oldest[kind] = first
    return [KindCounts(kind, states[kind], oldest.get(kind)) for kind in sorted(states)]


def new_job(batch: NewJobs, item: NewJob, now: float) -> Job:
    """The job as it stands right after it was stored."""
    by = batch.debounce
    run_at = now if batch.run_at is None else max(batch.run_at, now)
    if by is not None:
        run_at = now + by.seconds
    return Job(
        id=item.id,
        kind=batch.kind,
        payload=json.loads(item.payload) if item.decoded is None else item.decoded,
        state=JobState.QUEUED,
        tenant=batch.tenant,
        priority=batch.priority,
        lane=None if item.lane in (NO_LANE, UNKNOWN_LANE) else item.lane,
        key=item.key,
        debounce_key=None if by is None else item.burst,
        log=batch.log,
        parent_id=batch.parent_id if by is None else None,
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
