"""Children of cancelled jobs: which of them have still to be cancelled, too.

A cancel notes, in its own transaction, which of its jobs have attached children that are not
finished. These are then cancelled a batch at a time, by whoever cancelled the parents or, later, by
any process's upkeep; so a large family locks nobody out, and a kill leaves none of it behind.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from penstock.adapters.sqlite.database import Transaction

BATCH = 500
"""Children cancelled in one transaction."""

_CHILD = "parent_id = {} AND attached = 1 AND state IN ('queued', 'running')"
"""The condition of the index by parent, word for word."""


def mark(tx: Transaction, seqs: Sequence[int]) -> None:
    """Note that the children of these jobs, which were just cancelled, are to be, too."""
    tx.execute(
        "INSERT OR IGNORE INTO cascades (id) SELECT parent.id FROM jobs AS parent"
        " WHERE parent.seq IN (SELECT value FROM json_each(?))"
        f" AND EXISTS (SELECT 1 FROM jobs WHERE {_CHILD.format('parent.id')})",
        (json.dumps(list(seqs)),),
    )


def pending(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM cascades LIMIT 1").fetchone() is not None


def parents(tx: Transaction) -> str:
    """Some of the jobs whose children are to be cancelled: a JSON array of ids."""
    rows = tx.execute("SELECT id FROM cascades LIMIT ?", (BATCH,))
    return json.dumps([job_id for (job_id,) in rows])


def children(tx: Transaction, parents: str) -> list[Any]:
    """Some of their children: seq, id, tenant, log, state."""
    return tx.execute(
        "SELECT seq, jobs.id, tenant, log, state FROM json_each(?) AS p CROSS JOIN jobs"
        f" WHERE {_CHILD.format('p.value')} LIMIT ?",
        (parents, BATCH),
    ).fetchall()


def forget(tx: Transaction, parents: str) -> None:
    """Delete what is noted of those of them that have no more children to be cancelled."""
    tx.execute(
        "DELETE FROM cascades WHERE id IN (SELECT value FROM json_each(?))"
        f" AND NOT EXISTS (SELECT 1 FROM jobs WHERE {_CHILD.format('cascades.id')})",
        (parents,),
    )
