"""Converts script replies to jobs and leases."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.adapters.redis.lanes import lane
from penstock.adapters.sql.job_rows import waiting_for
from penstock.lanes.state import LaneState
from penstock.lanes.view import why_waiting
from penstock.model.job import Job, JobState, Priority, Record, parse_history
from penstock.model.job_log import parse_log
from penstock.model.payload import read_json, read_payload
from penstock.ports.operators import ProcessInfo
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Lease

if TYPE_CHECKING:
    from penstock.model.amounts import Amounts

Reply = Sequence[Any]


class Spec(NamedTuple):
    """Fields shared by all jobs of a batch."""

    kind: str
    tenant: str
    priority: int
    at: float
    timeout: float | None = None
    max_retries: int | None = None
    log: str | None = None
    parent_id: str | None = None
    trace: str | None = None
    rerun_of: str | None = None


@lru_cache(maxsize=1024)
def spec(text: str) -> Spec:
    return Spec(**json.loads(text))


def lease(told: Reply) -> Lease:
    """See `pick.told` in lua/common/pick.lua for the order; '' is none."""
    seq, job_id, spec_text, payload, lane_name, key, run_at, deadline, timeout, max_retries = told[
        :10
    ]
    attempts, crashes, releases, token, history, start_at, void_at, *amount = told[10:]
    reserved, refused, usual = amount or ("", "", "")
    common = spec(spec_text)
    return Lease(
        int(seq),
        job_id,
        common.kind,
        common.tenant,
        payload,
        common.priority,
        lane_name,
        key or None,
        common.log,
        common.parent_id,
        common.at,
        float(run_at) if run_at else common.at,
        float(deadline) if deadline else None,
        float(timeout) if timeout else common.timeout,
        int(max_retries) if max_retries else common.max_retries,
        int(attempts),
        int(crashes),
        int(releases),
        int(token),
        history,
        common.trace,
        float(start_at) if start_at else 0.0,
        float(void_at) if void_at else 0.0,
        _amounts(reserved) if reserved else None,
        refused or None,
        usual == "1",
    )


def _amounts(text: str) -> Amounts | None:
    from penstock.model.amounts import Amounts  # many queues count none

    return Amounts.read(text)


def jobs(view: Reply, now: float) -> list[Job]:
    """See `view.jobs` in lua/common/view.lua."""
    found, served, told, paused = view
    kinds = {kind for text in served for kind in json.loads(text)}
    families = {name: [lane(one)[0] for one in family] for name, family in told}
    reasons = _reasons(paused, now) if paused else {}
    return [_job(entry, kinds, families, reasons, now) for entry in found]


def _reasons(paused: Reply, now: float) -> dict[str, str]:
    """Why jobs are paused whose budget, by its payer, is spent."""
    from penstock.adapters.redis.budgets import state_of  # few queues have any
    from penstock.lanes.budgets import why

    states = [state_of(payer, flat) for payer, flat in paused if flat]
    return {state.payer: why(state) for state in states if state.closed(now)}


def table(flat: Reply) -> dict[str, str]:
    """A hash as the server tells it: names and values in turn. An empty value is none."""
    return {name: value for name, value in zip(flat[::2], flat[1::2], strict=True) if value != ""}


def _job(
    entry: Reply,
    served: Container[str],
    families: Mapping[str, list[LaneState]],
    reasons: Mapping[str, str],
    now: float,
) -> Job:
    flat, spec_text, payload, result, history, scheduled, ahead, lines = entry
    row, common = table(flat), spec(spec_text)
    state = JobState(row.get("state", "queued"))
    runs = state is JobState.RUNNING
    name = row.get("lane", NO_LANE)
    job = Job(
        id=row["id"],
        kind=common.kind,
        payload=read_payload(payload),
        state=state,
        tenant=common.tenant,
        priority=Priority(common.priority),
        lane=None if name in (NO_LANE, UNKNOWN_LANE) else name,
        key=row.get("key"),
        debounce_key=row.get("debounce_key"),
        log=common.log,
        parent_id=common.parent_id,
        rerun_of=common.rerun_of,
        enqueued_at=common.at,
        run_at=float(row.get("run_at", common.at)),
        started_at=_number(row, "started_at"),
        finished_at=_number(row, "finished_at"),
        deadline=_number(row, "deadline"),
        timeout=_number(row, "timeout") if "timeout" in row else common.timeout,
        max_retries=int(row["max_retries"]) if "max_retries" in row else common.max_retries,
        attempts=int(row.get("attempts", 0)),
        releases=int(row.get("releases", 0)),
        progress=1.0 if state is JobState.COMPLETED else float(row.get("progress", 0)),
        message=row.get("message", ""),
        result=read_json(result) if result else None,
        error=Record(read_json(row["error"])) if "error" in row and not runs else None,
        history=parse_history(history),
        lines=[Record(line) for line in parse_log(lines)],
    )
    if state is JobState.QUEUED:
        in_lane = why_waiting(name, families[name], ahead, now) if ahead >= 0 else None
        in_lane = reasons.get(row.get("paused", ""), in_lane)
        wait = row.get("waits_lane", "") if scheduled else None
        job.waiting_for = waiting_for(job, wait, served, in_lane, now)
    return job


def _number(row: dict[str, str], name: str) -> float | None:
    return float(row[name]) if name in row else None


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
