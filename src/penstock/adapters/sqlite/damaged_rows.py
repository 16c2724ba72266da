"""Rows that cannot be read: each is a dead letter, and the others go on."""

from __future__ import annotations

import json
from typing import Any

from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite import changes
from penstock.adapters.sqlite.database import Transaction
from penstock.errors import DamagedRow, describe
from penstock.ports.queue import Lease, Topic
from penstock.text.normalize import is_storable

HISTORY = 2 + Lease._fields.index("history")
"""Where a row of [band, turn, *Lease] has it."""


def sound(tx: Transaction, rows: list[Any]) -> list[Any]:
    """The rows that can be read; the others are buried."""
    # Only a transaction that has met text that is none reads so, see `database.leniently`.
    lenient = tx.connection.text_factory is not str
    damaged = [row for row in rows if _is_damaged(row, lenient)]
    if not damaged:
        return rows
    _bury(tx, [row[2] for row in damaged])
    return [row for row in rows if row not in damaged]


def _is_damaged(row: list[Any], lenient: bool) -> bool:
    if row[HISTORY] != "[]":
        try:
            json.loads(row[HISTORY])
        except ValueError:
            return True
    return lenient and not all(is_storable(value) for value in row if isinstance(value, str))


def _bury(tx: Transaction, seqs: list[int]) -> None:
    error = describe(DamagedRow(), retryable=False)
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": error}
    rows = tx.execute(
        "UPDATE jobs SET state = 'failed', ready = 0, finished_at = ?, error = ?,"
        " history = json_array(json(?)) WHERE seq IN (SELECT value FROM json_each(?))"
        " RETURNING id, tenant, log",
        (tx.now, json.dumps(error), json.dumps(record), json.dumps(seqs)),
    ).fetchall()
    changes.append(
        tx,
        [
            LogEntry(tenant, log, "failed", job_id, {"error": error})
            for job_id, tenant, log in rows
            if log is not None and all(map(is_storable, (job_id, tenant, log)))
        ],
    )
    tx.wake(Topic.FINISHED)
    tx.wake(Topic.READY)  # fewer were claimed than are there
