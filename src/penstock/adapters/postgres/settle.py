"""Ending leases: fenced, in batches, one statement per way to end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.postgres import changes
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.stop import cancel_requeued
from penstock.adapters.settlements import REQUEUED, ROW_OF, progress_entry, settled_entries
from penstock.model.job import HISTORY_LIMIT
from penstock.model.text import storable
from penstock.ports.queue import Outcome, Progress, Settlement, Topic

_ENDED_BADLY = (Outcome.RETRY, Outcome.FAILED)


def is_plain(s: Settlement) -> bool:
    """Whether a completed run concerns only its own row."""
    lease = s.lease
    return s.outcome is Outcome.COMPLETED and not lease.lane and not s.report and lease.task is None


def columns(settlements: Sequence[Settlement]) -> list[Sequence[Any]]:
    """Completed runs as `completed_1` takes them: a list for each column, in the order of seq."""
    rows = sorted(
        (s.lease.seq, s.lease.token, s.started_at, s.finished_at, s.result) for s in settlements
    )
    return list(zip(*rows, strict=True)) if rows else [[]] * 5


async def settle(
    tx: Transaction, member: str, settlements: Sequence[Settlement]
) -> list[Settlement]:
    """Store the outcomes whose lease still stands. Returns those that do not."""
    stale: list[Settlement] = []
    for outcome in ROW_OF:
        batch = [s for s in settlements if s.outcome is outcome]
        if batch:
            stale += await _settle(tx, member, outcome, batch)
    return stale


async def _settle(
    tx: Transaction, member: str, outcome: Outcome, batch: list[Settlement]
) -> list[Settlement]:
    if outcome is Outcome.COMPLETED:
        stored = await tx.fetchval(
            "SELECT penstock.completed_1($1, $2, $3, $4, $5)", *columns(batch)
        )
        settled = set(stored)
    else:
        rows = sorted((ROW_OF[outcome](s, member) for s in batch), key=lambda row: row[:2])
        limit = []
        if outcome in _ENDED_BADLY:
            rows = [_with_text(row) for row in rows]
            limit = [HISTORY_LIMIT]
        found = await tx.fetch(outcome.name.lower(), *zip(*rows, strict=True), *limit)
        settled = {seq for (seq,) in found}
    stale: list[Settlement] = []
    if len(settled) < len(batch) and outcome is not Outcome.CANCEL_SEEN:
        stale = await _refused(tx, batch)
    watched = [s for s in batch if s.lease.task is not None and s.lease.seq in settled]
    if watched:
        again = [s.lease.seq for s in watched if outcome in REQUEUED]
        cancelled = await cancel_requeued(tx, again) if again else set()
        await changes.append(tx, settled_entries(watched, settled, cancelled))
    if settled:
        tx.wake(Topic.READY if outcome is Outcome.HANDED_BACK else Topic.FINISHED)
    return stale


async def _refused(tx: Transaction, batch: list[Settlement]) -> list[Settlement]:
    refs = sorted(s.lease.ref for s in batch)
    refused = await tx.fetchval(
        "SELECT penstock.refused_1($1, $2)", [ref[0] for ref in refs], [ref[1] for ref in refs]
    )
    return [s for s in batch if s.lease.seq in set(refused)]


def _with_text(row: list[Any]) -> list[Any]:
    """A run that ended badly, with its record as text, and the type of its error."""
    *start, record = row
    error = record["error"] or {}
    return [*start, json.dumps(record), storable(str(error.get("type", "")))]


async def note_progress(tx: Transaction, notes: Sequence[Progress]) -> None:
    """Store how far running jobs have come."""
    rows = sorted((n.lease.seq, n.lease.token, n.fraction, storable(n.message)) for n in notes)
    updated = await tx.fetch("progress", *zip(*rows, strict=True))
    seqs = {seq for (seq,) in updated}
    entries = [
        progress_entry(note)
        for note in notes
        if note.lease.task is not None and note.lease.seq in seqs
    ]
    await changes.append(tx, entries)
