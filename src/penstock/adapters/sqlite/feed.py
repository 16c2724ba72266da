"""The feed of a tenant: the entries of all its logs, in one order."""

from __future__ import annotations

import sqlite3

from penstock.adapters.feed_position import foreign, parse
from penstock.adapters.sql.job_rows import change_of
from penstock.adapters.sqlite.transaction import Transaction, sql
from penstock.ports.queue import FEED_SECONDS, FeedEntry

FORM = r"s(\d{1,18})"
FORGET_LIMIT = 1000


def read(
    connection: sqlite3.Connection, tenant: str, after: str | None, limit: int
) -> list[FeedEntry]:
    place = 0
    if after is not None:
        place = int(parse(FORM, after)[0])
        if place > _last(connection):
            raise foreign(after)
    rows = connection.execute(sql("feed"), {"tenant": tenant, "after": place, "limit": limit})
    return [FeedEntry(f"s{position}", change_of(row)) for position, *row in rows]


def end(connection: sqlite3.Connection) -> str:
    return f"s{_last(connection)}"


def _last(connection: sqlite3.Connection) -> int:
    last: int = connection.execute("SELECT coalesce(max(position), 0) FROM feed").fetchone()[0]
    return last


def forget(tx: Transaction) -> bool:
    """Delete some that are past their time; whether there may be more."""
    values = {"limit": FORGET_LIMIT, "now": tx.now, "kept": FEED_SECONDS}
    return tx.execute(sql("forget_feed"), values).rowcount == FORGET_LIMIT
