"""Converts a settlement to its history entry, its log entry and its row."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from penstock.ports.queue import Outcome, Progress, Settlement
from penstock.text.normalize import storable

CANCELLED = "cancelled"


class LogEntry(NamedTuple):
    """A change to be appended to a log."""

    tenant: str
    log: str
    what: str
    job_id: str
    data: dict[str, Any]


LOGGED = (*(Outcome.COMPLETED, Outcome.RETRY, Outcome.FAILED, Outcome.RELEASED), Outcome.SUSPENDED)
"""What a watcher of a log is told; a hand-back changes nothing for it."""

READY_AGAIN = (Outcome.HANDED_BACK, Outcome.SUSPENDED)
"""After which others may claim the job at once."""
REQUEUED = (Outcome.RETRY, Outcome.RELEASED, Outcome.SUSPENDED, Outcome.HANDED_BACK)
"""What would be run again; of a log that is stopped it is cancelled instead."""


def settled_entries(
    settlements: Sequence[Settlement], settled: Container[int], cancelled: Container[int]
) -> list[LogEntry]:
    """What the logs are told of those that were settled (by seq), some of them
    cancelled because their log is stopped."""
    entries = []
    for s in settlements:
        lease, what = s.lease, s.outcome.value if s.outcome in LOGGED else None
        if lease.seq in cancelled:
            what = CANCELLED
        if lease.log is not None and lease.seq in settled and what is not None:
            entries.append(LogEntry(lease.tenant, lease.log, what, lease.id, settled_data(s, what)))
    return entries


def progress_row(note: Progress) -> list[Any]:
    """As the statement `progress` takes it."""
    return [*note.lease.ref, note.fraction, storable(note.message), note.lines]


def progress_entries(notes: Sequence[Progress], noted: Container[int]) -> list[LogEntry]:
    """What the logs are told of those that were noted (by seq)."""
    return [
        LogEntry(lease.tenant, lease.log, "progress", lease.id, progress_data(note))
        for note in notes
        if (lease := note.lease).log is not None
        and note.fraction is not None
        and lease.seq in noted
    ]


def settled_data(s: Settlement, what: str) -> dict[str, Any]:
    """What the log is told of it."""
    data: dict[str, Any] = {"kind": s.lease.kind, "attempt": s.lease.attempts}
    if s.error is not None:
        data["error"] = s.error
    if what in (Outcome.RETRY.value, Outcome.RELEASED.value, Outcome.SUSPENDED.value):
        data["run_at"] = s.run_at
    return data


def progress_data(note: Progress) -> dict[str, Any]:
    """What the log is told of it."""
    return {"kind": note.lease.kind, "progress": note.fraction, "message": note.message}


def record_of(s: Settlement, member: str) -> dict[str, Any]:
    """A run that did not complete, as the job's history keeps it."""
    return {
        "attempt": s.lease.attempts,
        "outcome": s.outcome.value,
        "started_at": s.started_at,
        "finished_at": s.finished_at,
        "process": member,
        "error": s.error,
        "traceback": s.traceback,
    }


def _completed(s: Settlement, member: str) -> list[Any]:
    return [*s.lease.ref, s.started_at, s.finished_at, s.result]


def _ended_badly(s: Settlement, member: str) -> list[Any]:
    error = json.dumps(s.error)
    times = [s.started_at, s.finished_at]
    return [*s.lease.ref, *times, error, s.run_at, record_of(s, member)]


def _given_back(s: Settlement, member: str) -> dict[str, Any] | None:
    """The record of a run whose attempt is returned; None for a job that was not run."""
    return record_of(s, member) if s.started_at else None


def _released(s: Settlement, member: str) -> list[Any]:
    reason = storable(s.error["message"]) if s.error else ""
    return [*s.lease.ref, s.run_at, reason, s.waits_lane, s.finished_at, _given_back(s, member)]


def _suspended(s: Settlement, member: str) -> list[Any]:
    return [*s.lease.ref, s.run_at, s.waits_lane, s.signal, s.started_at]


def _handed_back(s: Settlement, member: str) -> list[Any]:
    return [*s.lease.ref, s.run_at or None, s.waits_lane, _given_back(s, member)]


def _cancel_seen(s: Settlement, member: str) -> list[Any]:
    return [*s.lease.ref]


ROW_OF: dict[Outcome, Callable[[Settlement, str], list[Any]]] = {
    Outcome.COMPLETED: _completed,
    Outcome.RETRY: _ended_badly,
    Outcome.FAILED: _ended_badly,
    Outcome.RELEASED: _released,
    Outcome.SUSPENDED: _suspended,
    Outcome.HANDED_BACK: _handed_back,
    Outcome.CANCEL_SEEN: _cancel_seen,
}
"""A settlement by a member, as the statement named after its outcome takes it."""
