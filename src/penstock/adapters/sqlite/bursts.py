"""Stores jobs of bursts: the latest payload of each, or one job for equal ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from penstock.adapters.sqlite.enqueue import by_id, enqueue
from penstock.adapters.sqlite.fairness import Weights
from penstock.adapters.sqlite.lanes import configure
from penstock.adapters.sqlite.transaction import Transaction, sql
from penstock.model.job import Job
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Debounce, NewJobs, Topic


def debounce(
    tx: Transaction, batch: NewJobs, by: Debounce, lane_config: Callable[[str], LaneConfig]
) -> list[Job]:
    """Store the batch, or replace the payloads of jobs that were never claimed; see `NewJobs`."""
    configure(tx, {item.lane for item in batch.items} - {NO_LANE, UNKNOWN_LANE}, lane_config)
    items = [(item.id, item.payload, item.lane, item.amount, item.burst) for item in batch.items]
    values = {
        **{name: getattr(batch, name) for name in ("tenant", "kind", "deadline", "timeout")},
        **{name: getattr(batch, name) for name in ("max_retries", "trace")},
        "items": json.dumps(items),
        "priority": int(batch.priority),
        "debounce": by.seconds,
        "max_wait": by.max_wait,
        "now": tx.now,
    }
    tx.execute(sql("end_bursts"), values)
    tx.execute(sql("replace_payloads"), values)
    tx.execute(sql("debounce"), values)
    found = dict(tx.execute(sql("debounced"), values).fetchall())
    tx.wake(Topic.READY)
    jobs = {job.id: job for job in by_id(tx, list(found.values()))}
    return [jobs[found[item.id]] for item in batch.items]


def enqueue_unique(
    tx: Transaction,
    batch: NewJobs,
    seconds: float,
    weights: Weights,
    lane_config: Callable[[str], LaneConfig],
) -> list[Job]:
    """Store those of the batch that have no equal yet; the job of each."""
    named = {"tenant": batch.tenant, "kind": batch.kind, "now": tx.now}
    bursts = json.dumps([item.burst for item in batch.items])
    found = dict(tx.execute(sql("unique_jobs_of"), {**named, "bursts": bursts}).fetchall())
    new = [item for item in batch.items if item.burst not in found]
    made = enqueue(tx, replace(batch, items=new, unique_for=None), weights, lane_config)
    jobs = {item.burst: job for item, job in zip(new, made, strict=True)}
    noted = json.dumps([(burst, job.id) for burst, job in jobs.items()])
    tx.execute(sql("note_unique_jobs"), {**named, "items": noted, "unique_for": seconds})
    old = {job.id: job for job in by_id(tx, list(found.values()))} if found else {}
    return [jobs.get(item.burst) or old[found[item.burst]] for item in batch.items]
