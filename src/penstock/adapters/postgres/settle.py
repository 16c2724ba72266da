"""Settles leases: fenced, in batches, one statement per outcome."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.settlement_rows import (
    READY_AGAIN,
    REQUEUED,
    ROW_OF,
    LogEntry,
    progress_entries,
    progress_row,
    settled_entries,
)
from penstock.adapters.sql.stop import cancel_requeued
from penstock.model.job import HISTORY_LIMIT
from penstock.model.job_log import LOG_LIMIT
from penstock.ports.queue import Outcome, Progress, Ref, Settlement, Topic
from penstock.text.normalize import storable

IS_MEMBER = "SELECT EXISTS (SELECT 1 FROM penstock.processes WHERE number = $1 AND id = $2)"
"""Whether a number is that of this membership: its id is what nobody else ever has."""
_ENDED_BADLY = (Outcome.RETRY, Outcome.FAILED)
_GIVEN_BACK = (Outcome.RELEASED, Outcome.HANDED_BACK)


async def standing_leases(
    tx: Transaction, holder: int, leases: Collection[Ref], *, ended: bool = False
) -> set[Ref]:
    """Which leases still stand: only these teach a lane anything, or have a slot to free. Their
    jobs are locked, so that they stand until this transaction ends. With `ended`, also those that
    have ended since and nobody else has begun; then nothing is locked."""
    if not leases:
        return set()
    rows = await tx.fetch(
        "SELECT j.seq, j.id, j.token FROM penstock.jobs AS j"
        " JOIN unnest($1::bigint[], $2::text[], $3::bigint[]) AS s (seq, id, token)"
        " ON j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token"
        " WHERE j.holder IS NOT DISTINCT FROM $4 OR $5 AND j.holder IS NULL"
        f" ORDER BY j.seq {'' if ended else 'FOR UPDATE OF j'}",
        *zip(*sorted(leases), strict=True),
        holder,
        ended,
    )
    return {(seq, job_id, token) for seq, job_id, token in rows}


def is_plain(s: Settlement) -> bool:
    """Whether a completed run concerns only its own row."""
    lease = s.lease
    return s.outcome is Outcome.COMPLETED and not lease.lane and not s.report and lease.log is None


def columns(settlements: Sequence[Settlement]) -> list[Sequence[Any]]:
    """Completed runs as `completed_1` takes them: a list for each column, in the order of seq."""
    rows = sorted((*s.lease.ref, s.started_at, s.finished_at, s.result) for s in settlements)
    return list(zip(*rows, strict=True)) if rows else [[]] * 6


class Settled(NamedTuple):
    stale: list[Settlement]
    """Those whose lease does not stand."""
    entries: list[LogEntry]
    """For the logs; to be appended when no more jobs are to be locked."""


async def settle(
    tx: Transaction, number: int, member: str, settlements: Sequence[Settlement]
) -> Settled:
    """Store the outcomes whose lease still stands."""
    settled = Settled([], [])
    for outcome in ROW_OF:
        batch = [s for s in settlements if s.outcome is outcome]
        if batch:
            stale, entries = await _settle(tx, number, member, outcome, batch)
            settled.stale.extend(stale)
            settled.entries.extend(entries)
    return settled


async def _settle(
    tx: Transaction, number: int, member: str, outcome: Outcome, batch: list[Settlement]
) -> Settled:
    if outcome is Outcome.COMPLETED:
        stored = await tx.fetchval(
            "SELECT penstock.completed_1($1, $2, $3, $4, $5, $6, $7, $8)",
            number,
            member,
            *columns(batch),
        )
        settled = set(stored)
    else:
        rows = sorted((ROW_OF[outcome](s, member) for s in batch), key=lambda row: row[:3])
        limit = []
        if outcome is Outcome.SUSPENDED:  # then the statement sees every signal that has come
            await standing_leases(tx, number, [s.lease.ref for s in batch])
        if outcome in _ENDED_BADLY:
            rows = [_with_text(row) for row in rows]
        elif outcome in _GIVEN_BACK:
            rows = [[*start, record and json.dumps(record)] for *start, record in rows]
        if outcome in (*_ENDED_BADLY, *_GIVEN_BACK):
            limit = [HISTORY_LIMIT]
        found = await tx.fetch(outcome.name.lower(), *zip(*rows, strict=True), *limit, number)
        settled = {seq for (seq,) in found}
    stale: list[Settlement] = []
    if len(settled) < len(batch) and outcome is Outcome.CANCEL_SEEN:
        runs_again = [s._replace(outcome=Outcome.HANDED_BACK) for s in batch]
        await _settle(tx, number, member, Outcome.HANDED_BACK, runs_again)
    elif len(settled) < len(batch):
        stale = await refused(tx, number, member, batch)
    watched = [s for s in batch if s.lease.log is not None and s.lease.seq in settled]
    again = [s.lease.seq for s in watched if outcome in REQUEUED]
    cancelled = await cancel_requeued(tx, again) if again else set()
    if settled:
        tx.wake(Topic.READY if outcome in READY_AGAIN else Topic.FINISHED)
    return Settled(stale, settled_entries(watched, settled, cancelled))


async def refused(
    tx: Transaction, number: int, member: str, settlements: Sequence[Settlement]
) -> list[Settlement]:
    """Those that are not stored as they are given."""
    batch = [s for s in settlements if s.outcome is not Outcome.CANCEL_SEEN]
    if not batch:
        return []
    refs = zip(*sorted(s.lease.ref for s in batch), strict=True)
    seqs = await tx.fetchval("SELECT penstock.refused_1($1, $2, $3, $4, $5)", number, member, *refs)
    return [s for s in batch if s.lease.seq in set(seqs)]


def _with_text(row: list[Any]) -> list[Any]:
    """A run that ended badly, with its record as text, and the type of its error."""
    *start, record = row
    error = record["error"] or {}
    return [*start, json.dumps(record), storable(str(error.get("type", "")))]


async def note_progress(tx: Transaction, number: int, notes: Sequence[Progress]) -> list[LogEntry]:
    """Store how far running jobs have come, and what they have logged; what the logs are
    to be told."""
    rows = sorted((progress_row(note) for note in notes), key=lambda row: row[:3])
    updated = await tx.fetch("progress", *zip(*rows, strict=True), number, LOG_LIMIT)
    return progress_entries(notes, {seq for (seq,) in updated})
