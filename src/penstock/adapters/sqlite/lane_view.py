"""Lanes as operators see and control them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from penstock import runtime
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.transaction import SqliteSql, Transaction, sql
from penstock.lanes import view
from penstock.lanes.limits import repace
from penstock.lanes.state import own_limits
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo

FAR = 10_000
"""How many of the jobs ahead of one are counted."""


def infos(connection: sqlite3.Connection) -> list[LaneInfo]:
    waiting = dict(connection.execute(sql("count_waiting")).fetchall())
    return view.infos(store.load_all(connection), waiting, runtime.now())


def control(tx: Transaction, name: str, what: LaneCommand) -> bool:
    lane = store.load(tx, name)
    if lane is None:
        return False
    view.control(lane, what)
    store.save(tx, lane)
    store.wake_lane(tx, name)
    return True


def limit(tx: Transaction, name: str, limits: LaneLimits | None) -> bool:
    lane = store.load(tx, name)
    if lane is None:
        return False
    tx.execute(sql("limit"), {**own_limits(limits), "name": name})
    changed = store.load(tx, name)
    assert changed is not None
    repace(changed, lane.pace, tx.now)
    store.save(tx, changed)
    store.wake_lane(tx, name)
    return True


async def why_waiting(tx: Sql, rows: Sequence[Row]) -> dict[int, str]:
    """By seq, what keeps jobs (rows of `job_columns`) in the lines of lanes from starting."""
    assert isinstance(tx, SqliteSql)
    return {row["seq"]: _why_waiting(tx.connection, row, tx.now) for row in rows}


def _why_waiting(connection: sqlite3.Connection, row: Row, now: float) -> str:
    name, ahead = row["lane"], 0
    kinds = connection.execute("SELECT kind FROM lines WHERE lane = ?", (name,)).fetchall()
    for (kind,) in kinds:
        for ready in (1, 2):
            ahead += connection.execute(
                "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE ready > 0 AND ready = ?"
                " AND lane = ? AND kind = ? AND (band, turn, seq) < (?, ?, ?) LIMIT ?)",
                (ready, name, kind, row["band"], row["turn"], row["seq"], FAR),
            ).fetchone()[0]
    return view.why_waiting(name, store.with_parent(connection, name), ahead, now)
