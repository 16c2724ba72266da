"""Rows of a simulated queue: what each transaction changes in them, as values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple


class JobRow(NamedTuple):
    """A job after a change; see sql/tables/jobs.sql."""

    seq: int
    id: str
    tenant: str
    kind: str
    state: str
    ready: int
    run_at: float
    since: float
    waits_lane: str | None
    lane: str
    band: int
    token: int
    holder: int | None
    attempts: int
    max_retries: int | None
    crashes: int
    releases: int
    parent_id: str | None
    attached: int
    result: str | None


class JobGone(NamedTuple):
    seq: int


class MemberRow(NamedTuple):
    """A worker process that has joined."""

    number: int
    id: str
    pid: int


class MemberGone(NamedTuple):
    number: int


class SlotRow(NamedTuple):
    """A slot that was taken."""

    lane: str
    holder: int
    ref: int


class SlotFreed(NamedTuple):
    lane: str
    holder: int
    ref: int


class LaneRow(NamedTuple):
    """A lane after a change; the breaker is open from its first `step` on."""

    name: str
    step: int
    trial: int | None
    max_parallel: int
    own_parallel: int | None
    learnt_parallel: int | None

    @property
    def places(self) -> int:
        """Requests at a time: as an operator says, as was learnt, or as configured."""
        return self.own_parallel or self.learnt_parallel or self.max_parallel


class StepRecord(NamedTuple):
    """A step after a change; it has no result until it is recorded."""

    job: int
    key: str
    name: str
    arguments: str
    result: str | None
    details: str | None
    """Of a receipt."""


class StepGone(NamedTuple):
    job: int
    key: str


class SignalRow(NamedTuple):
    """A signal after a change; `taken_by` is the key of the wait that has it."""

    job: int
    number: int
    name: str
    key: str | None
    payload: str
    taken_by: str | None


class SignalGone(NamedTuple):
    job: int
    number: int


RowChange = (
    JobRow
    | JobGone
    | MemberRow
    | MemberGone
    | SlotRow
    | SlotFreed
    | LaneRow
    | StepRecord
    | StepGone
    | SignalRow
    | SignalGone
)
_TABLES: dict[type[Any], tuple[str, str]] = {
    JobRow: ("jobs", "new"),
    JobGone: ("jobs", "old"),
    MemberRow: ("processes", "new"),
    MemberGone: ("processes", "old"),
    SlotRow: ("slots", "new"),
    SlotFreed: ("slots", "old"),
    LaneRow: ("lanes", "new"),
    StepRecord: ("steps", "new"),
    StepGone: ("steps", "old"),
    SignalRow: ("signals", "new"),
    SignalGone: ("signals", "old"),
}
_UPDATED = (JobRow, LaneRow, StepRecord, SignalRow)
"""The others come and go, and what changes in between does not matter."""


def watch(connection: sqlite3.Connection, tell: Callable[[RowChange], None]) -> None:
    """Have `tell` called for every change, while the transaction that makes it is under way."""
    for number, (row, (table, which)) in enumerate(_TABLES.items()):
        columns: tuple[str, ...] = row._fields
        values = ", ".join(f"{which}.{column}" for column in columns)

        def told(*values: Any, row: type[Any] = row) -> None:
            tell(row._make(values))

        connection.create_function(f"told_{number}", len(columns), told)
        occasions = ["INSERT" if which == "new" else "DELETE"]
        if row in _UPDATED:
            occasions.append(f"UPDATE OF {', '.join(columns)}")
        for occasion in occasions:
            connection.execute(
                f"CREATE TEMP TRIGGER told_{number}_{occasion[:6]} AFTER {occasion}"
                f" ON main.{table} BEGIN SELECT told_{number}({values}); END"
            )


def tables(connection: sqlite3.Connection) -> list[str]:
    """The tables that a simulation fills: those that are empty in a new queue, and in no index of
    words, which is one table of many to SQLite."""
    named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'chunk_%'"
    names = [name for (name,) in connection.execute(named)]
    some = [connection.execute(f"SELECT EXISTS (SELECT 1 FROM {n})").fetchone()[0] for n in names]
    return [name for name, any_row in zip(names, some, strict=True) if not any_row]
