"""Rows of a jobs table as jobs, and of a table of changes, for the queues that keep them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from penstock.lanes.view import clock
from penstock.model.change import Change
from penstock.model.job import Job, JobState, Priority, Record, parse_history
from penstock.model.job_log import parse_log
from penstock.model.payload import read_json, read_payload
from penstock.ports.operators import KindCounts
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, NewJob, NewJobs

COLUMNS = (
    "id, kind, payload, state, tenant, priority, lane, key, log, parent_id, enqueued_at, run_at, "
    "started_at, finished_at, deadline, timeout, max_retries, attempts, releases, progress, "
    "message, result, error, history, ready, band, turn, seq, lines, rerun_of"
)
STATE, LANE, READY, BAND, TURN, SEQ, LINES, RERUN_OF = 3, 6, 24, 25, 26, 27, 28, 29
"""Where a row has what."""


def in_lines(rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """The rows of jobs that wait in the line of a lane."""
    return [row for row in rows if row[READY] and row[LANE] not in (NO_LANE, UNKNOWN_LANE)]


def job_of(row: Sequence[Any], served: Container[str], lanes: Mapping[int, str], now: float) -> Job:
    """The job in a row of COLUMNS. `served` are the kinds that have a worker process, `lanes`
    says, by seq, why a job has to wait in its line."""
    state = JobState(row[STATE])
    runs = state is JobState.RUNNING
    return Job(
        id=row[0],
        kind=row[1],
        payload=read_payload(row[2]),
        state=state,
        tenant=row[4],
        priority=Priority(row[5]),
        lane=None if row[LANE] in (NO_LANE, UNKNOWN_LANE) else row[LANE],
        key=row[7],
        log=row[8],
        parent_id=row[9],
        rerun_of=row[RERUN_OF],
        enqueued_at=row[10],
        run_at=row[11],
        started_at=row[12],
        finished_at=row[13],
        deadline=row[14],
        timeout=row[15],
        max_retries=row[16],
        attempts=row[17],
        releases=row[18],
        progress=row[19],
        message=row[20],
        result=None if row[21] is None else read_json(row[21]),
        error=None if row[22] is None or runs else Record(read_json(row[22])),
        history=parse_history(row[23]),
        lines=[Record(line) for line in parse_log(row[LINES])],
        waiting_for=_waiting_for(row, served, lanes, now) if state is JobState.QUEUED else None,
    )


def _waiting_for(
    row: Sequence[Any], served: Container[str], lanes: Mapping[int, str], now: float
) -> str:
    kind, run_at, ready = row[1], row[11], row[READY]
    if not ready and run_at > now:
        due = clock(run_at)
        return f"its time, {due}" + (f" ({row[20]})" if row[20] else "")
    if kind not in served:
        return f"a worker process that handles kind {kind!r}"
    return lanes.get(row[SEQ], "a worker")


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
