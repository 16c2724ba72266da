"""Turns unreadable rows into dead letters, so that the others keep running."""

from __future__ import annotations

import json

from penstock.adapters.sql import changes
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite.transaction import Transaction, run
from penstock.errors import DamagedRow, describe
from penstock.lanes.waiting import Picked
from penstock.ports.queue import Lease, Topic
from penstock.text.normalize import is_storable


def sound(tx: Transaction, picked: list[Picked]) -> list[Picked]:
    """Those whose rows can be read; the others are buried."""
    # Only a transaction that has met text that is none reads so, see `database.leniently`.
    lenient = tx.connection.text_factory is not str
    damaged = [one.lease.seq for one in picked if _is_damaged(one.lease, lenient)]
    if not damaged:
        return picked
    _bury(tx, damaged)
    return [one for one in picked if one.lease.seq not in damaged]


def _is_damaged(lease: Lease, lenient: bool) -> bool:
    if lease.history != "[]":
        try:
            json.loads(lease.history)
        except ValueError:
            return True
    return lenient and not all(is_storable(value) for value in lease if isinstance(value, str))


def _bury(tx: Transaction, seqs: list[int]) -> None:
    error = describe(DamagedRow(), retryable=False)
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": error}
    rows = tx.execute(
        "UPDATE jobs SET state = 'failed', ready = 0, finished_at = ?, error = ?,"
        " history = json_array(json(?)) WHERE seq IN (SELECT value FROM json_each(?))"
        " RETURNING id, tenant, log",
        (tx.now, json.dumps(error), json.dumps(record), json.dumps(seqs)),
    ).fetchall()
    entries = [
        LogEntry(tenant, log, "failed", job_id, {"error": error})
        for job_id, tenant, log in rows
        if log is not None and all(map(is_storable, (job_id, tenant, log)))
    ]
    run(changes.append(tx.shared, entries))
    tx.wake(Topic.FINISHED)
    tx.wake(Topic.READY)  # fewer were claimed than are there
