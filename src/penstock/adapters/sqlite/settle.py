"""Ending leases: fenced, in batches, one statement per way to end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.settlements import LOGGED, ROW_OF, progress_entry, settled_entry
from penstock.adapters.sqlite import changes
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.adapters.sqlite.lane_settle import judge, standing_leases
from penstock.adapters.sqlite.lanes import free_slots
from penstock.model.job import HISTORY_LIMIT
from penstock.model.text import storable
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
        standing = standing_leases(tx, settlements)
        in_lanes = [s.lease.seq for s in settlements if s.lease.lane and s.lease.ref in standing]
        settlements, spared = judge(tx, number, settlements, standing)
    for outcome, row_of in ROW_OF.items():
        batch = [s for s in settlements if s.outcome is outcome]
        if batch:
            stale += _settle(tx, outcome, batch, [row_of(s, member) for s in batch])
    if in_lanes:
        free_slots(tx, number, in_lanes)
    return stale, spared


def _settle(
    tx: Transaction, outcome: Outcome, batch: list[Settlement], rows: list[list[Any]]
) -> list[Settlement]:
    logged = outcome in LOGGED and any(s.lease.task is not None for s in batch)
    statement = sql(outcome.name.lower()) + (" RETURNING jobs.seq" if logged else "")
    parameters = {"batch": json.dumps(rows), "history_limit": HISTORY_LIMIT}
    cursor = tx.execute(statement, parameters)
    if logged:
        settled = {seq for (seq,) in cursor.fetchall()}
        changes.append(
            tx, [settled_entry(s) for s in batch if s.lease.task and s.lease.seq in settled]
        )
        count = len(settled)
    else:
        count = cursor.rowcount
    if count:
        tx.wake(Topic.READY if outcome is Outcome.HANDED_BACK else Topic.FINISHED)
    if count == len(batch) or outcome is Outcome.CANCEL_SEEN:
        return []
    refused = {seq for (seq,) in tx.execute(sql("stale"), parameters).fetchall()}
    tx.execute(sql("cancel_seen"), parameters)  # cancelled while it ended: the run is over too
    return [s for s in batch if s.lease.seq in refused]


def note_progress(tx: Transaction, notes: Sequence[Progress]) -> None:
    """Store how far running jobs have come."""
    rows = [(n.lease.seq, n.lease.token, n.fraction, storable(n.message)) for n in notes]
    updated = tx.execute(sql("progress") + " RETURNING jobs.seq", {"batch": json.dumps(rows)})
    seqs = {seq for (seq,) in updated.fetchall()}
    entries = [
        progress_entry(note)
        for note in notes
        if note.lease.task is not None and note.lease.seq in seqs
    ]
    changes.append(tx, entries)
