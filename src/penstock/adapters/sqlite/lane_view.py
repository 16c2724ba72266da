"""Lanes as people see and steer them."""

from __future__ import annotations

import sqlite3
import time

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.database import Transaction
from penstock.lanes import view
from penstock.ports.queue import LaneInfo, Steer


def infos(connection: sqlite3.Connection) -> list[LaneInfo]:
    now = time.time()
    waiting = dict(
        connection.execute(
            "SELECT lane, count(*) FROM jobs WHERE ready > 0 AND lane NOT IN ('', '?')"
            " GROUP BY lane"
        ).fetchall()
    )
    return [view.info(lane, waiting.get(lane.name, 0), now) for lane in store.load_all(connection)]


def steer(tx: Transaction, name: str, what: Steer) -> bool:
    lane = store.load(tx, name)
    if lane is None:
        return False
    view.steer(lane, what)
    store.save(tx, lane)
    store.wake_lane(tx, name)
    return True


def why_waiting(connection: sqlite3.Connection, name: str, now: float) -> str:
    """What keeps the first in a lane's line from starting, in words."""
    return view.why_waiting(name, store.with_parent(connection, name), now)
