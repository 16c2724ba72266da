"""Selects the jobs at the head of the line. Unreadable rows become dead letters, so that the others
keep running.

Every statement reads the head of an index. Batches travel as one JSON value in each direction:
a statement that yields rows one by one hands the interpreter lock back and forth for each row,
which under load costs far more than the row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from penstock.adapters.sql.chores import fail
from penstock.adapters.sqlite.transaction import Transaction, run
from penstock.errors import DamagedRow, describe
from penstock.lanes.waiting import Picked
from penstock.ports.queue import Lease, Topic
from penstock.text.normalize import is_storable

KINDS_PER_STATEMENT = 100
"""SQLite allows 500 parts in a compound SELECT."""

_LEASE = (
    "jobs.seq, id, kind, tenant, payload, priority, lane, key, log, parent_id, enqueued_at, "
    "run_at, deadline, timeout, max_retries, attempts + 1, crashes, releases, token + 1, "
    "history, trace, 0.0, 0.0"
)

_RESUMES = "ifnull(instr(waits_lane, char(10)), 0)"
"""Whether it was suspended: its reason, and no lane's name, has a newline."""


def pick(tx: Transaction, ready: int, lane: str, kinds: Sequence[str], limit: int) -> list[Picked]:
    """The first `limit` in the line of `lane`."""
    rows: list[list[Any]] = []
    for start in range(0, len(kinds), KINDS_PER_STATEMENT):
        some = kinds[start : start + KINDS_PER_STATEMENT]
        parameters = [value for kind in some for value in (ready, lane, kind)]
        statement = _pick_statement(len(some))
        rows += json.loads(tx.execute(statement, [*parameters, limit]).fetchone()[0])
    picked = [
        Picked(band, turn, Lease(*lease), bool(resumes)) for band, turn, resumes, *lease in rows
    ]
    if len(kinds) > KINDS_PER_STATEMENT:
        picked.sort(key=lambda one: (one.band, one.turn, one.lease.seq))
        del picked[limit:]
    return sound(tx, picked)


@lru_cache(maxsize=128)
def _pick_statement(kinds: int) -> str:
    # SQLite merges the parts of an ordered UNION ALL lazily, each from its own place in the
    # index, so that the cost follows the limit. `kind IN (...)` would read and sort the backlog.
    part = (
        "SELECT band, turn, seq FROM jobs WHERE ready > 0 AND ready = ? AND lane = ? AND kind = ?"
    )
    heads = " UNION ALL ".join([part] * kinds) + " ORDER BY 1, 2, 3 LIMIT ?"
    return (
        f"SELECT json_group_array(json_array(head.band, head.turn, {_RESUMES}, {_LEASE}))"
        f" FROM ({heads}) AS head CROSS JOIN jobs ON jobs.seq = head.seq"
    )


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
