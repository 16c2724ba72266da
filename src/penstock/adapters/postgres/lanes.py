"""Lanes in PostgreSQL: their rows, their slots, and the lines of jobs waiting for them.

A transaction locks the lanes it goes by before it reads them, works on them in memory, and
writes what has changed. What is read with the lock still to be had would be old news.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.lanes import IN_FORCE, STATE, STATE_AND_KNOWN, States, wake_lane
from penstock.lanes import breaker
from penstock.lanes.state import QUESTIONS, LaneState, limits_of
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Topic

_READ = f"""
SELECT {IN_FORCE},
       (SELECT count(*) FROM penstock.slots WHERE slots.lane = lanes.name)::integer,
       (SELECT count(*) FROM penstock.slots
        WHERE slots.lane = lanes.name || '{QUESTIONS}')::integer,
       trial IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM penstock.slots
           WHERE slots.lane = lanes.name AND slots.holder = trial_holder AND slots.ref = trial),
       penstock.clock()
FROM penstock.lanes
"""
_WITH_PARENTS = """
name = ANY ($1) OR name = ANY (ARRAY(
    SELECT parent FROM penstock.lanes WHERE name = ANY ($1) AND parent IS NOT NULL))
"""
_LOCK = f"""
SELECT 1 FROM penstock.lanes WHERE {_WITH_PARENTS}
ORDER BY (parent IS NULL), name FOR UPDATE
"""
_SAVE, _SAVE_KNOWN = (
    f"""
UPDATE penstock.lanes AS l
SET {", ".join(f"{name} = n.{name}" for name in columns)}, touched_at = $2
FROM jsonb_populate_recordset(NULL::penstock.lanes, $1) AS n WHERE l.name = n.name
"""
    for columns in (STATE, STATE_AND_KNOWN)
)


async def configure(
    tx: Transaction, names: Iterable[str], lane_config: Callable[[str], LaneConfig]
) -> None:
    """Make these lanes and their parents known; what has happened in them stays."""
    for statement, rows in configured(names, lane_config):
        await tx.execute(statement, rows, tx.now)


def configured(
    names: Iterable[str], lane_config: Callable[[str], LaneConfig]
) -> list[tuple[str, str]]:
    """What makes lanes and their parents known: statements, each with the rows it takes."""
    configs: dict[str, LaneConfig] = {}
    for name in names:
        configs[name] = config = lane_config(name)
        if config.parent is not None:
            configs[config.parent] = lane_config(config.parent)
    by_statement: dict[str, list[dict[str, Any]]] = {}
    for name, config in sorted(configs.items()):
        statement = "assumed_lane" if config.assumed else "lane"
        by_statement.setdefault(statement, []).append(limits_of(name, config))
    return [(statement, json.dumps(rows)) for statement, rows in by_statement.items()]


async def lock(tx: Transaction, names: Iterable[str]) -> States:
    """Lock these lanes and their parents, then read them. The transaction's clock is set to the
    time they were had: what others did meanwhile is the past. Trials whose slot is gone, because
    whoever made them is, have ended."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    await tx.execute(_LOCK, wanted)
    states: States = {}
    for *row, lost, now in await tx.fetch(f"{_READ} WHERE {_WITH_PARENTS}", wanted):
        lane = LaneState(*row)
        if lost:
            lane.trial = lane.trial_holder = None
        states[lane.name] = lane
        tx.now = now
    mended = [lane for lane in states.values() if breaker.set_back(lane, tx.now)]
    await save(tx, mended)
    for lane in mended:
        await wake_lane(tx, lane.name)
    return states


async def lock_held(tx: Transaction, holder: int) -> None:
    rows = await tx.fetch("SELECT DISTINCT lane FROM penstock.slots WHERE holder = $1", holder)
    await lock(tx, [lane for (lane,) in rows])


async def save(tx: Transaction, lanes: Iterable[LaneState]) -> None:
    lanes = list(lanes)
    for lane in lanes:
        lane.keep()
    knows = any(lane.knows for lane in lanes)
    columns = ("name", *(STATE_AND_KNOWN if knows else STATE))
    rows = [{name: getattr(lane, name) for name in columns} for lane in lanes]
    if rows:
        await tx.execute(_SAVE_KNOWN if knows else _SAVE, json.dumps(rows), tx.now)


async def take_slots(tx: Transaction, holder: int, slots: Sequence[tuple[str, int]]) -> None:
    """Store slots (lane, ref) of a holder."""
    if slots:
        names, refs = zip(*slots, strict=True)
        await tx.execute(
            "INSERT INTO penstock.slots (lane, holder, ref, since)"
            " SELECT s.lane, $3, s.ref, $4 FROM unnest($1::text[], $2::bigint[]) AS s (lane, ref)",
            names,
            refs,
            holder,
            tx.now,
        )


async def free_slots(tx: Transaction, holder: int, refs: Sequence[int] | None = None) -> None:
    """Give back the slots of these requests (or all of the holder's) and wake who waits. The
    lanes are locked: a line that finds no slot must not begin to wait for one just then."""
    rows = await tx.fetch(
        "DELETE FROM penstock.slots WHERE holder = $1 AND ($2::bigint[] IS NULL OR ref = ANY ($2))"
        " RETURNING lane",
        holder,
        refs,
    )
    freed: dict[str, int] = {}
    for (lane,) in rows:
        freed[lane] = freed.get(lane, 0) + 1
    await wake_waiting(tx, freed)
    if any(ref < 0 for ref in refs or ()) or await _asked(tx, freed):
        tx.wake(Topic.READY)  # who waits for a permit stands in no line


async def _asked(tx: Transaction, lanes: Iterable[str]) -> bool:
    """Whether a question may wait for a slot of any of these."""
    waiting = "SELECT 1 FROM penstock.lanes WHERE name = ANY ($1) AND asked_until > $2 LIMIT 1"
    return await tx.fetchval(waiting, list(lanes), tx.now) is not None


async def wake_waiting(tx: Transaction, freed: Mapping[str, int]) -> None:
    """Let lines that wait for a slot of these lanes be looked at again: of each kind that is
    handled somewhere, as many as slots are free, those that have waited longest first."""
    if freed:
        names = sorted(freed)
        counts = [freed[name] for name in names]
        tx.woken += [tuple(row) for row in await tx.fetch("wake_waiting", names, counts)]


async def unserved(tx: Transaction, woken: Sequence[tuple[str, str]]) -> bool:
    """Whether any of these lines, woken earlier in this trip, still has to be looked at."""
    lanes, kinds = zip(*woken, strict=True)
    return bool(await tx.fetchval("unserved", lanes, kinds, tx.now))


async def pass_on(tx: Transaction, lanes: Iterable[LaneState]) -> None:
    """Slots that a line could not use are for others to look at."""
    free = {lane.name: lane.slots_for_jobs(tx.now) for lane in lanes if lane.trial is None}
    await wake_waiting(tx, {name: count for name, count in free.items() if count})


class PostgresLanes:
    """See `penstock.adapters.sql.lanes.LaneRows`."""

    def __init__(self, tx: Transaction) -> None:
        self.tx = tx

    async def look(self, names: Sequence[str] | None) -> States:
        if names is None:
            rows = await self.tx.fetch(f"{_READ} ORDER BY name")
        else:
            rows = await self.tx.fetch(f"{_READ} WHERE {_WITH_PARENTS}", names)
        return {row[0]: LaneState(*tuple(row)[:-2]) for row in rows}

    async def lock(self, names: Sequence[str]) -> States:
        return await lock(self.tx, names)

    async def save(self, lanes: Iterable[LaneState]) -> None:
        await save(self.tx, lanes)

    async def take_slots(self, holder: int, slots: Sequence[tuple[str, int]]) -> None:
        await take_slots(self.tx, holder, slots)

    async def lock_held(self, holder: int) -> None:
        await lock_held(self.tx, holder)

    async def free_slots(self, holder: int) -> None:
        await free_slots(self.tx, holder)

    async def wake_waiting(self, lane: str) -> None:
        await wake_waiting(self.tx, {lane: 1})
