"""Settles leases: fenced, in batches, one statement per outcome."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.sql import changes
from penstock.adapters.sql.settlement_rows import (
    LOGGED,
    READY_AGAIN,
    REQUEUED,
    ROW_OF,
    progress_entries,
    progress_row,
    settled_entries,
)
from penstock.adapters.sql.stop import cancel_requeued
from penstock.adapters.sqlite.lane_settle import judge, standing_leases
from penstock.adapters.sqlite.lanes import free_slots
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.model.job import HISTORY_LIMIT
from penstock.model.job_log import LOG_LIMIT
from penstock.ports.queue import Outcome, Progress, Ref, Settlement, Topic


def settle(
    tx: Transaction, number: int, member: str, settlements: Sequence[Settlement]
) -> tuple[list[Settlement], frozenset[Ref]]:
    """Store the outcomes whose lease still stands. Returns those that do not, and the leases
    whose failure was their lane's."""
    stale: list[Settlement] = []
    spared: frozenset[Ref] = frozenset()
    in_lanes: list[int] = []
    if any(s.lease.lane or s.report for s in settlements):
        standing = standing_leases(tx, number, [s.lease.ref for s in settlements])
        in_lanes = [s.lease.seq for s in settlements if s.lease.lane and s.lease.ref in standing]
        settlements, spared = judge(tx, number, settlements, standing)
    for outcome, row_of in ROW_OF.items():
        batch = [s for s in settlements if s.outcome is outcome]
        if batch:
            stale += _settle(tx, number, outcome, batch, [row_of(s, member) for s in batch])
    if in_lanes:
        free_slots(tx, number, in_lanes)
    return stale, spared


def refused(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settlement]:
    """Those that are not stored as they are given."""
    batch = json.dumps([s.lease.ref for s in settlements])
    seqs = {seq for (seq,) in tx.execute(sql("stale"), {"batch": batch}).fetchall()}
    return [s for s in settlements if s.lease.seq in seqs and s.outcome is not Outcome.CANCEL_SEEN]


def _settle(
    tx: Transaction, number: int, outcome: Outcome, batch: list[Settlement], rows: list[list[Any]]
) -> list[Settlement]:
    watched = outcome in (*LOGGED, *REQUEUED) and any(s.lease.log is not None for s in batch)
    statement = sql(outcome.name.lower()) + (" RETURNING jobs.seq" if watched else "")
    batched = {"batch": json.dumps(rows), "history_limit": HISTORY_LIMIT}
    parameters = {**batched, "member": number, "now": tx.now}
    cursor = tx.execute(statement, parameters)
    settled = {seq for (seq,) in cursor.fetchall()} if watched else set()
    count = len(settled) if watched else cursor.rowcount
    stale: list[Settlement] = []
    if count < len(batch) and outcome is Outcome.CANCEL_SEEN:
        again = [s._replace(outcome=Outcome.HANDED_BACK) for s in batch]
        handed_back = [ROW_OF[Outcome.HANDED_BACK](s, "") for s in again]
        _settle(tx, number, Outcome.HANDED_BACK, again, handed_back)
    elif count < len(batch):
        stale = refused(tx, batch)
        tx.execute(sql("cancel_seen"), parameters)  # cancelled while it ended: the run is over too
    if settled:
        cancelled = (
            run(cancel_requeued(tx.shared, sorted(settled))) if outcome in REQUEUED else set()
        )
        run(changes.append(tx.shared, settled_entries(batch, settled, cancelled)))
    if count:
        tx.wake(Topic.READY if outcome in READY_AGAIN else Topic.FINISHED)
    return stale


def note_progress(tx: Transaction, number: int, notes: Sequence[Progress]) -> None:
    """Store how far running jobs have come, and what they have logged."""
    batch = json.dumps([progress_row(note) for note in notes])
    parameters = {"batch": batch, "member": number, "log_limit": LOG_LIMIT}
    updated = tx.execute(sql("progress") + " RETURNING jobs.seq", parameters)
    seqs = {seq for (seq,) in updated.fetchall()}
    run(changes.append(tx.shared, progress_entries(notes, seqs)))
