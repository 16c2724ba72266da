"""Stores new jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from penstock.adapters.sql import changes
from penstock.adapters.sql.job_rows import new_job, read_jobs
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite.fairness import Weights, take_turns
from penstock.adapters.sqlite.lanes import SqliteLanes, configure
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.errors import KeyConflict, LogStopped, ParentEnded
from penstock.model.job import Job
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, NewJob, NewJobs, ParentRun, Topic

_COMMON = (
    *("tenant", "kind", "deadline", "timeout", "max_retries", "log", "parent_id", "attached"),
    *("trace", "rerun_of"),
)
"""Columns that all jobs of a batch have in common."""


def enqueue(
    tx: Transaction, batch: NewJobs, weights: Weights, lane_config: Callable[[str], LaneConfig]
) -> list[Job]:
    """Store the batch; the job of each item, in order, new or already there."""
    if batch.parent_run is not None:
        _refuse_ended(tx, batch.parent_id, batch.parent_run)
    if batch.debounce is not None:
        from penstock.adapters.sqlite.bursts import debounce

        return debounce(tx, batch, batch.debounce, lane_config)
    if batch.unique_for is not None:
        from penstock.adapters.sqlite.bursts import enqueue_unique

        return enqueue_unique(tx, batch, batch.unique_for, weights, lane_config)
    records, source = batch.records, None
    if records is not None:
        from penstock.adapters.sql.records import lock_source

        source = run(lock_source(tx.shared, records))
    by_key, replaced = _resolve_keys(tx, batch)
    new = [item for item in batch.items if item.key is None or by_key[item.key] is item]
    if new and batch.log is not None:
        _refuse_if_stopped(tx, batch, new)
    if batch.tick is not None:  # the last that may refuse, and the first that writes
        from penstock.adapters.sql.schedules import move

        run(move(tx.shared, batch.tick))
    if replaced:
        tx.execute(
            "UPDATE jobs SET key = NULL WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(replaced),),
        )
    lanes = {item.lane for item in new} - {NO_LANE, UNKNOWN_LANE}
    configure(tx, lanes, lane_config)
    stored = _insert(tx, batch, new, weights) if new else {}
    if stored and any(item.amount is not None for item in new):
        from penstock.adapters.sql import amounts

        run(amounts.store(tx.shared, [item for item in new if item.id in stored]))
    if records is not None and source is not None and stored:
        from penstock.adapters.sql.records import take_over

        run(take_over(tx.shared, source, records, new[0].id))
    old_ids = [found for found in by_key.values() if isinstance(found, str)]
    old_ids += [item.id for item in new if item.id not in stored]
    old = {job.id: job for job in by_id(tx, old_ids)} if old_ids else {}
    jobs = []
    for item in batch.items:
        found = by_key[item.key] if item.key is not None else item
        job_id = found if isinstance(found, str) else found.id
        jobs.append(stored.get(job_id) or old[job_id])
    return jobs


def _refuse_ended(tx: Transaction, parent_id: str | None, run: ParentRun) -> None:
    """Only a run that goes on has children."""
    row = tx.execute(
        "SELECT 1 FROM jobs JOIN processes ON processes.number = jobs.holder"
        " WHERE jobs.id = ? AND jobs.state = 'running' AND jobs.token = ? AND processes.id = ?",
        (parent_id, *run),
    ).fetchone()
    if row is None:
        raise ParentEnded(parent_id or "")


def _refuse_if_stopped(tx: Transaction, batch: NewJobs, items: list[NewJob]) -> None:
    """A stopped log takes no new jobs; those that are there already are given back."""
    if _refuses(tx, batch):
        ids = {item.id for item in items}
        there = "SELECT count(*) FROM jobs WHERE id IN (SELECT value FROM json_each(?))"
        if tx.execute(there, (json.dumps(list(ids)),)).fetchone()[0] < len(ids):
            raise LogStopped(batch.log or "")


def _refuses(tx: Transaction, batch: NewJobs) -> bool:
    """Whether the log of a batch is stopped, and they are no children of a job that may finish
    with them."""
    row = tx.execute(
        "SELECT whole_before FROM stopped_logs WHERE tenant = ? AND log = ?",
        (batch.tenant, batch.log),
    ).fetchone()
    if row is None or not batch.attached:
        return row is not None
    parent = (
        "SELECT 1 FROM jobs WHERE id = ? AND state = 'running' AND tenant = ? AND log = ?"
        " AND enqueued_at <= ?"
    )
    values = (batch.parent_id, batch.tenant, batch.log, row[0])
    return tx.execute(parent, values).fetchone() is None


def _resolve_keys(tx: Transaction, batch: NewJobs) -> tuple[dict[str, NewJob | str], list[str]]:
    """For each key: the id of the job that has it, else the item that will. And the jobs that
    are to give up theirs."""
    keys = [item.key for item in batch.items if item.key is not None]
    if not keys:
        return {}, []
    rows = tx.execute(
        "SELECT key, id, payload, state FROM jobs"
        " WHERE tenant = ? AND kind = ? AND key IN (SELECT value FROM json_each(?))",
        (batch.tenant, batch.kind, json.dumps(keys)),
    )
    taken = {key: (job_id, payload, state) for key, job_id, payload, state in rows}
    resolved: dict[str, NewJob | str] = {}
    give_up: list[str] = []
    for item in batch.items:
        if item.key is None:
            continue
        earlier = resolved.get(item.key)
        if isinstance(earlier, NewJob):
            if earlier.payload != item.payload:
                raise KeyConflict(item.key, earlier.id)
        elif item.key in taken:
            job_id, payload, state = taken[item.key]
            anew = batch.replace_finished and state in ("failed", "cancelled")
            if anew and job_id != item.id:
                give_up.append(job_id)
                resolved[item.key] = item
            elif payload != item.payload and not anew:
                raise KeyConflict(item.key, job_id)
            else:
                resolved[item.key] = job_id
        else:
            resolved[item.key] = item
    return resolved, give_up


def _insert(
    tx: Transaction, batch: NewJobs, items: list[NewJob], weights: Weights
) -> dict[str, Job]:
    """Insert those whose id is not there yet; the jobs made, by id."""
    scheduled = batch.run_at is not None and batch.run_at > tx.now
    turns = {item.lane: (0.0, 0.0) for item in items}
    if not scheduled:
        for lane, count in Counter(item.lane for item in items).items():
            turns[lane] = take_turns(tx, lane, batch.priority, batch.tenant, count, weights)
    placed = []
    for item in items:
        last, step = turns[item.lane]
        turns[item.lane] = (last + step, step)
        placed.append((item.id, item.payload, item.key, item.lane, last + step))
    last_seq = tx.execute("SELECT max(seq) FROM jobs").fetchone()[0] or 0
    inserted = tx.execute(
        sql("insert"),
        {
            "items": json.dumps(placed),
            **{name: getattr(batch, name) for name in _COMMON},
            "priority": int(batch.priority),
            "ready": 0 if scheduled else 1,
            "run_at": batch.run_at if scheduled else tx.now,
            "now": tx.now,
        },
    ).rowcount
    made = items
    if inserted < len(items):
        rows = tx.execute("SELECT id FROM jobs WHERE seq > ?", (last_seq,)).fetchall()
        first = {item.id: item for item in reversed(items)}
        made = [first[job_id] for (job_id,) in rows]
    if scheduled:
        tx.wake(Topic.READY)
    else:
        tx.new += [item.id for item in made]
    if batch.log is not None and made:
        data = {"kind": batch.kind}
        entries = [LogEntry(batch.tenant, batch.log, "queued", item.id, data) for item in made]
        run(changes.append(tx.shared, entries))
    return {item.id: new_job(batch, item, tx.now) for item in made}


def by_id(tx: Transaction, ids: list[str]) -> list[Job]:
    """The jobs that have these ids."""
    return run(read_jobs(SqliteLanes(tx.shared), "WHERE id = ANY (:ids)", ids=ids))
