"""Lanes as people see and steer them."""

from __future__ import annotations

import sqlite3
import time

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.database import Transaction
from penstock.lanes import view
from penstock.ports.queue import LaneInfo, Steer

FAR = 10_000
"""How many of the jobs ahead of one are counted."""


def infos(connection: sqlite3.Connection) -> list[LaneInfo]:
    waiting = dict(
        connection.execute(
            "SELECT lane, count(*) FROM jobs WHERE ready > 0 AND lane NOT IN ('', '?')"
            " GROUP BY lane"
        ).fetchall()
    )
    return view.infos(store.load_all(connection), waiting, time.time())


def steer(tx: Transaction, name: str, what: Steer) -> bool:
    lane = store.load(tx, name)
    if lane is None:
        return False
    view.steer(lane, what)
    store.save(tx, lane)
    store.wake_lane(tx, name)
    return True


def why_waiting(connection: sqlite3.Connection, name: str, place: tuple[int, float, int]) -> str:
    """What keeps the job at `place` (band, turn, seq) in a lane's line from starting."""
    ahead = 0
    kinds = connection.execute("SELECT kind FROM lines WHERE lane = ?", (name,)).fetchall()
    for (kind,) in kinds:
        for ready in (1, 2):
            ahead += connection.execute(
                "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE ready > 0 AND ready = ?"
                " AND lane = ? AND kind = ? AND (band, turn, seq) < (?, ?, ?) LIMIT ?)",
                (ready, name, kind, *place, FAR),
            ).fetchone()[0]
    return view.why_waiting(store.with_parent(connection, name), name, ahead, time.time())
