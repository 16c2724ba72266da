"""Vectors that nothing needs any more are noted, and deleted after a while."""

from __future__ import annotations

import sqlite3

from penstock.adapters.sql.unused_vectors import Key, StoredVector, plan
from penstock.adapters.sqlite.database import Transaction, sql

BEFORE_ALL = ("", "", "")
_KEY = "(tenant, model, hash) = (?, ?, ?)"


def look(tx: Transaction | sqlite3.Connection, after: Key | None, limit: int) -> list[StoredVector]:
    """The next vectors behind a key, by an index that has all that is asked of them."""
    rows = tx.execute(sql("look_at_vectors"), (*(after or BEFORE_ALL), limit))
    return [StoredVector(row[:3], bool(row[3]), row[4]) for row in rows]


def purge(tx: Transaction, after: Key | None, keep_seconds: float, limit: int) -> int:
    """Do what is to be done about the next ones; how many were deleted."""
    delete, note, unnote = plan(look(tx, after, limit), tx.now, keep_seconds)
    run = tx.connection.executemany
    run(f"DELETE FROM vectors WHERE {_KEY}", delete)
    run(f"DELETE FROM unused_vectors WHERE {_KEY}", delete + unnote)
    run("INSERT INTO unused_vectors VALUES (?, ?, ?, ?)", [(*key, tx.now) for key in note])
    return len(delete)
