"""Turns unreadable rows into dead letters, so that the others keep running."""

from __future__ import annotations

import json

from penstock.adapters.sql.chores import fail
from penstock.adapters.sqlite.transaction import Transaction, run
from penstock.errors import DamagedRow, describe
from penstock.lanes.waiting import Picked
from penstock.ports.queue import Lease, Topic
from penstock.text.normalize import is_storable

_BURY = (
    "UPDATE penstock.jobs SET state = 'failed', ready = 0, finished_at = :now, {set_error},"
    " history = json_array(json(:record)) WHERE seq = ANY (:seqs) RETURNING id, tenant, log"
)


def sound(tx: Transaction, picked: list[Picked]) -> list[Picked]:
    """Those whose rows can be read; the others are buried."""
    # Only a transaction that has met text that is none reads so, see `database.leniently`.
    lenient = tx.connection.text_factory is not str
    damaged = [one.lease.seq for one in picked if _is_damaged(one.lease, lenient)]
    if not damaged:
        return picked
    run(fail(tx.shared, damaged, describe(DamagedRow(), retryable=False), _BURY))
    tx.wake(Topic.READY)  # fewer were claimed than are there
    return [one for one in picked if one.lease.seq not in damaged]


def _is_damaged(lease: Lease, lenient: bool) -> bool:
    if lease.history != "[]":
        try:
            json.loads(lease.history)
        except ValueError:
            return True
    return lenient and not all(is_storable(value) for value in lease if isinstance(value, str))
