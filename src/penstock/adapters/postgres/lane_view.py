"""Lanes as operators see and control them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.dialect import Row
from penstock.lanes import view
from penstock.lanes.limits import repace
from penstock.lanes.state import own_limits
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo

FAR = 10_000
"""How many of the jobs ahead of one are counted."""


async def infos(tx: Transaction) -> list[LaneInfo]:
    states = await store.look_at(tx.database, tx.connection)
    waiting = dict(await tx.fetch("count_waiting"))
    return view.infos(list(states.values()), waiting, tx.now)


async def control(tx: Transaction, name: str, what: LaneCommand) -> bool:
    """False when there is no such lane; so with `limit`."""
    lane = (await store.lock(tx, [name])).get(name)
    if lane is None:
        return False
    view.control(lane, what)
    await store.save(tx, [lane])
    await store.wake_lane(tx, name)
    return True


async def limit(tx: Transaction, name: str, limits: LaneLimits | None) -> bool:
    lane = (await store.lock(tx, [name])).get(name)
    if lane is None:
        return False
    await tx.execute("limit", name, *own_limits(limits).values())
    changed = (await store.lock(tx, [name]))[name]
    repace(changed, lane.pace, tx.now)
    await store.save(tx, [changed])
    await store.wake_lane(tx, name)
    return True


async def why_waiting(tx: Transaction, rows: Sequence[Row]) -> dict[int, str]:
    """By seq, what keeps jobs (rows of `job_columns`) in the lines of lanes from starting."""
    names = sorted({row["lane"] for row in rows})
    states = await store.look_at(tx.database, tx.connection, names)
    columns = [[row[name] for row in rows] for name in ("seq", "lane", "band", "turn")]
    ahead = dict(await tx.fetch("ahead", *columns, FAR))
    return {
        row["seq"]: view.why_waiting(
            row["lane"], store.family(states, row["lane"]), ahead[row["seq"]], tx.now
        )
        for row in rows
    }
