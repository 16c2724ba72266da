"""Lanes in SQLite: their rows, their slots, and the lines of jobs waiting for them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.adapters.sql.lanes import IN_FORCE, STATE, STATE_AND_KNOWN, States, wake_lane
from penstock.adapters.sqlite.transaction import SqliteSql, Transaction, own, run, sql
from penstock.lanes import breaker
from penstock.lanes.state import QUESTIONS, LaneState, limits_of
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Topic

Queryable = Transaction | sqlite3.Connection

_READ = (
    f"SELECT {IN_FORCE}, (SELECT count(*) FROM slots WHERE slots.lane = lanes.name),"
    f" (SELECT count(*) FROM slots WHERE slots.lane = lanes.name || '{QUESTIONS}')"
    " FROM lanes WHERE name = ?"
)
_WRITE, _WRITE_KNOWN = (
    f"UPDATE lanes SET {', '.join(f'{name} = :{name}' for name in columns)}, touched_at = :now"
    " WHERE name = :name"
    for columns in (STATE, STATE_AND_KNOWN)
)


def configure(
    tx: Transaction, names: Iterable[str], lane_config: Callable[[str], LaneConfig]
) -> None:
    """Make these lanes and their parents known; what has happened in them stays."""
    for name in names:
        config = lane_config(name)
        if config.parent is not None:
            configure(tx, [config.parent], lane_config)
        known = "SELECT 1 FROM lanes WHERE name = ?"
        if config.assumed and tx.execute(known, (name,)).fetchone() is not None:
            continue
        tx.execute(sql("lane"), {**limits_of(name, config), "now": tx.now})


def load(tx: Queryable, name: str) -> LaneState | None:
    row = tx.execute(_READ, (name,)).fetchone()
    lane = None if row is None else LaneState(*row)
    if lane is not None and isinstance(tx, Transaction) and breaker.set_back(lane, tx.now):
        save(tx, lane)
        run(wake_lane(tx.shared, name))
    return lane


def with_parent(tx: Queryable, name: str) -> list[LaneState]:
    """The lane and, if it has one, its parent; empty when nobody configured it."""
    lane = load(tx, name)
    if lane is None:
        return []
    parent = None if lane.parent is None else load(tx, lane.parent)
    return [lane] if parent is None else [lane, parent]


def save(tx: Transaction, lane: LaneState) -> None:
    lane.keep()
    values = {name: getattr(lane, name) for name in STATE_AND_KNOWN}
    write = _WRITE_KNOWN if lane.knows else _WRITE
    tx.execute(write, {**values, "name": lane.name, "now": tx.now})


def take_slots(tx: Transaction, holder: int, slots: Sequence[tuple[str, int]]) -> None:
    """Store slots (lane, ref) of a holder."""
    tx.execute(
        "INSERT INTO slots (lane, holder, ref, since)"
        " SELECT value ->> 0, ?, value ->> 1, ? FROM json_each(?)",
        (holder, tx.now, json.dumps(slots)),
    )


def free_slots(tx: Transaction, holder: int, refs: Sequence[int] | None = None) -> None:
    """Give back the slots of these requests (or all of the holder's) and wake who waits."""
    some = "" if refs is None else " AND ref IN (SELECT value FROM json_each(?))"
    parameters: list[Any] = [holder] if refs is None else [holder, json.dumps(list(refs))]
    freed: dict[str, int] = {}
    for (lane,) in tx.execute(
        f"DELETE FROM slots WHERE holder = ?{some} RETURNING lane", parameters
    ).fetchall():
        freed[lane] = freed.get(lane, 0) + 1
    for lane, count in freed.items():
        wake_waiting(tx, lane, count)
    if any(ref < 0 for ref in refs or ()) or _asked(tx, freed):
        tx.wake(Topic.READY)  # who waits for a permit stands in no line


def _asked(tx: Transaction, lanes: Iterable[str]) -> bool:
    """Whether a question may wait for a slot of any of these."""
    waiting = (
        "SELECT 1 FROM lanes WHERE asked_until > ? AND name IN (SELECT value FROM json_each(?))"
    )
    return tx.execute(waiting, (tx.now, json.dumps(list(lanes)))).fetchone() is not None


def end_lost_trials(tx: Transaction, lanes: Sequence[LaneState]) -> None:
    """A trial whose slot is gone was made by somebody who is."""
    held = "SELECT 1 FROM slots WHERE lane = ? AND holder = ? AND ref = ?"
    for lane in lanes:
        where = (lane.name, lane.trial_holder, lane.trial)
        if lane.trial is not None and tx.execute(held, where).fetchone() is None:
            lane.trial = lane.trial_holder = None
            save(tx, lane)


def wake_waiting(tx: Transaction, lane: str, count: int) -> None:
    """Let lines that wait for a slot of `lane` be looked at again: of each kind that is handled
    somewhere, the `count` that have waited longest."""
    if tx.execute("SELECT 1 FROM lines WHERE waits_for = ? LIMIT 1", (lane,)).fetchone() is None:
        return
    for (kind,) in tx.execute("SELECT DISTINCT value FROM processes, json_each(kinds)").fetchall():
        tx.woken += tx.execute(
            "UPDATE lines SET wake_at = 0, waits_for = NULL WHERE kind = ? AND lane IN"
            " (SELECT lane FROM lines WHERE waits_for = ? AND kind = ? ORDER BY since LIMIT ?)"
            " RETURNING lane, kind",
            (kind, lane, kind, count),
        ).fetchall()


def announce(tx: Transaction) -> None:
    """Tell other processes of the lines that slots were freed for, unless a claim in the same
    trip has served them: in vain they would all come and hold up the writer."""
    if (
        tx.woken
        and tx.execute(
            "SELECT 1 FROM json_each(?) AS s JOIN lines ON lane = s.value ->> 0"
            " AND kind = s.value ->> 1 WHERE wake_at <= ? LIMIT 1",
            (json.dumps(tx.woken), tx.now),
        ).fetchone()
    ):
        tx.wake(Topic.READY)
    tx.woken.clear()


def pass_on(tx: Transaction, lanes: Sequence[LaneState]) -> None:
    """Slots that a line could not use are for others to look at."""
    for lane in lanes:
        if (free := lane.slots_for_jobs(tx.now)) and lane.trial is None:
            wake_waiting(tx, lane.name, free)


class SqliteLanes:
    """See `penstock.adapters.sql.lanes.LaneRows`."""

    def __init__(self, tx: SqliteSql) -> None:
        self.tx = tx

    async def look(self, names: Sequence[str] | None) -> States:
        if names is None:
            rows = self.tx.connection.execute(_READ.replace(" WHERE name = ?", " ORDER BY name"))
            return {row[0]: LaneState(*row) for row in rows}
        found = [with_parent(self.tx.connection, name) for name in names]
        return {lane.name: lane for lanes in found for lane in lanes}

    async def lock(self, names: Sequence[str]) -> States:
        tx, found = own(self.tx), States()
        for name in names:
            found |= {lane.name: lane for lane in with_parent(tx, name) if lane.name not in found}
        end_lost_trials(tx, list(found.values()))
        return found

    async def save(self, lanes: Iterable[LaneState]) -> None:
        for lane in lanes:
            save(own(self.tx), lane)

    async def take_slots(self, holder: int, slots: Sequence[tuple[str, int]]) -> None:
        if slots:
            take_slots(own(self.tx), holder, slots)

    async def lock_held(self, holder: int) -> None:
        """Whoever writes has locked the whole file."""

    async def free_slots(self, holder: int) -> None:
        free_slots(own(self.tx), holder)

    async def wake_waiting(self, lane: str) -> None:
        wake_waiting(own(self.tx), lane, 1)
        announce(own(self.tx))
