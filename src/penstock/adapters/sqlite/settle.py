"""Ending leases: fenced, in batches, one statement per way to end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

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
    for outcome, row_of in _ROWS.items():
        batch = [s for s in settlements if s.outcome is outcome]
        if batch:
            stale += _settle(tx, outcome, batch, [row_of(s, member) for s in batch])
    if in_lanes:
        free_slots(tx, number, in_lanes)
    return stale, spared


def _settle(
    tx: Transaction, outcome: Outcome, batch: list[Settlement], rows: list[list[Any]]
) -> list[Settlement]:
    logged = outcome in _LOGGED and any(s.lease.task is not None for s in batch)
    statement = sql(outcome.name.lower()) + (" RETURNING jobs.seq" if logged else "")
    parameters = {"batch": json.dumps(rows), "history_limit": HISTORY_LIMIT}
    cursor = tx.execute(statement, parameters)
    if logged:
        settled = {seq for (seq,) in cursor.fetchall()}
        changes.append(tx, [_entry(s) for s in batch if s.lease.task and s.lease.seq in settled])
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
        changes.Entry(
            n.lease.tenant,
            n.lease.task,
            "progress",
            n.lease.id,
            {"kind": n.lease.kind, "progress": n.fraction, "message": n.message},
        )
        for n in notes
        if n.lease.task is not None and n.lease.seq in seqs
    ]
    changes.append(tx, entries)


def _entry(s: Settlement) -> changes.Entry:
    assert s.lease.task is not None
    data: dict[str, Any] = {"kind": s.lease.kind, "attempt": s.lease.attempts}
    if s.error is not None:
        data["error"] = s.error
    if s.outcome in (Outcome.RETRY, Outcome.RELEASED):
        data["run_at"] = s.run_at
    return changes.Entry(s.lease.tenant, s.lease.task, s.outcome.value, s.lease.id, data)


def _completed(s: Settlement, member: str) -> list[Any]:
    return [s.lease.seq, s.lease.token, s.started_at, s.finished_at, s.result]


def _ended_badly(s: Settlement, member: str) -> list[Any]:
    record = {
        "attempt": s.lease.attempts,
        "outcome": s.outcome.value,
        "started_at": s.started_at,
        "finished_at": s.finished_at,
        "process": member,
        "error": s.error,
        "traceback": s.traceback,
    }
    error = json.dumps(s.error)
    times = [s.started_at, s.finished_at]
    return [s.lease.seq, s.lease.token, *times, error, s.run_at, record]


def _released(s: Settlement, member: str) -> list[Any]:
    reason = storable(s.error["message"]) if s.error else ""
    return [s.lease.seq, s.lease.token, s.run_at, reason, s.waits_lane]


def _handed_back(s: Settlement, member: str) -> list[Any]:
    return [s.lease.seq, s.lease.token, s.run_at or None, s.waits_lane]


def _cancel_seen(s: Settlement, member: str) -> list[Any]:
    return [s.lease.seq, s.lease.token]


_LOGGED = (Outcome.COMPLETED, Outcome.RETRY, Outcome.FAILED, Outcome.RELEASED)
"""What a watcher of a task is told; a hand-back changes nothing for it."""

_ROWS: dict[Outcome, Callable[[Settlement, str], list[Any]]] = {
    Outcome.COMPLETED: _completed,
    Outcome.RETRY: _ended_badly,
    Outcome.FAILED: _ended_badly,
    Outcome.RELEASED: _released,
    Outcome.HANDED_BACK: _handed_back,
    Outcome.CANCEL_SEEN: _cancel_seen,
}
