"""Claiming: what may run now, in order, leased in the same transaction.

Every statement reads the head of an index. Batches travel as one JSON value in each direction:
a statement that yields rows one by one hands the interpreter lock back and forth for each row,
which under load costs far more than the row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from penstock.adapters.sqlite import changes, takeover
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.adapters.sqlite.turns import Weights, place
from penstock.model.job import HISTORY_LIMIT
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Lease, Topic, Want

STAGE_LIMIT = 1000
ADOPT_LIMIT = 1000
KINDS_PER_STATEMENT = 100
"""SQLite allows 500 parts in a compound SELECT."""


class Claimed(NamedTuple):
    leases: list[Lease]
    next_at: float | None
    member: bool


_PICKED = (
    "jobs.seq, id, kind, tenant, payload, priority, lane, key, task, parent_id, enqueued_at, "
    "run_at, deadline, timeout, max_retries, attempts + 1, crashes, releases, token + 1, history"
)


def claim(tx: Transaction, member: int, want: Want, weights: Weights, folder: Path) -> Claimed:
    """Lease up to `want.limit` jobs to `member`, the first in line first.

    The same trip takes back what lapsed members held, lets scheduled jobs join the line and
    fails queued jobs whose deadline has passed.
    """
    look = {"member": member, "now": tx.now}
    is_member, any_lapsed, due, overdue, unknown, crashed = tx.execute(
        sql("pending"), look
    ).fetchone()
    if any_lapsed:
        takeover.lapsed(tx, folder)
        is_member = tx.execute(sql("pending"), look).fetchone()[0]
    if not is_member:
        return Claimed([], None, False)
    if overdue:
        _fail_overdue(tx)
    if due:
        _stage(tx, weights)
    if unknown:
        _adopt(tx, want, weights)
    kinds = tuple(want.kinds)
    rows = _pick(tx, 1, kinds, want.limit)
    if (crashed or any_lapsed) and want.crashed:
        rows = (_pick(tx, 2, kinds, 1) + rows)[: want.limit]
    leases = [Lease._make(row[2:]) for row in rows]
    if leases:
        seqs = json.dumps([lease.seq for lease in leases])
        tx.execute(sql("lease"), {"member": member, "now": tx.now, "seqs": seqs})
        served = {(row[8], row[0]): row[1] for row in rows}  # the last of each line is the latest
        for (lane, band), turn in served.items():
            tx.execute(sql("serve"), {"lane": lane, "band": band, "turn": turn})
    return Claimed(leases, None if len(leases) == want.limit else _next_due(tx), True)


def _fail_overdue(tx: Transaction) -> None:
    error = {
        "type": "DeadlineExceeded",
        "message": "its deadline passed before it could start",
        "retryable": False,
    }
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": error}
    rows = tx.execute(
        sql("overdue"),
        {
            "now": tx.now,
            "error": json.dumps(error),
            "record": json.dumps(record),
            "history_limit": HISTORY_LIMIT,
            "limit": STAGE_LIMIT,
        },
    ).fetchall()
    changes.append(
        tx,
        [
            changes.Entry(tenant, task, "failed", job_id, {"error": error})
            for job_id, tenant, task in rows
            if task is not None
        ],
    )
    tx.wake(Topic.FINISHED)


def _stage(tx: Transaction, weights: Weights) -> None:
    """Let scheduled jobs whose time has come join the line."""
    parameters = {"now": tx.now, "limit": STAGE_LIMIT}
    if due := tx.execute(sql("due"), parameters).fetchall():
        place(tx, due, weights)


def _next_due(tx: Transaction) -> float | None:
    """When the next scheduled job, or a queued job's deadline, comes up."""
    row = tx.execute(sql("next_due")).fetchone()
    return min((at for at in row if at is not None), default=None)


def _adopt(tx: Transaction, want: Want, weights: Weights) -> None:
    """Fill in jobs of our kinds that were enqueued where the kind was unknown."""
    for kind, defaults in want.kinds.items():
        rows = tx.execute(
            "SELECT seq, band, tenant FROM jobs"
            " WHERE ready > 0 AND ready = 1 AND lane = ? AND kind = ?"
            " ORDER BY band, turn, seq LIMIT ?",
            (UNKNOWN_LANE, kind, ADOPT_LIMIT),
        ).fetchall()
        if rows:
            seqs = json.dumps([row[0] for row in rows])
            tx.execute(
                sql("adopt"),
                {
                    "seqs": seqs,
                    "timeout": defaults.timeout,
                    "max_retries": defaults.max_retries,
                },
            )
            place(tx, [(seq, defaults.lane, band, tenant) for seq, band, tenant in rows], weights)


def _pick(tx: Transaction, ready: int, kinds: Sequence[str], limit: int) -> list[Any]:
    """The first `limit` rows in line: [band, turn, *Lease]."""
    rows: list[Any] = []
    for start in range(0, len(kinds), KINDS_PER_STATEMENT):
        some = kinds[start : start + KINDS_PER_STATEMENT]
        parameters = [value for kind in some for value in (ready, NO_LANE, kind)]
        statement = _pick_statement(len(some))
        rows += json.loads(tx.execute(statement, [*parameters, limit]).fetchone()[0])
    if len(kinds) > KINDS_PER_STATEMENT:
        rows.sort(key=lambda row: (row[0], row[1], row[2]))
        del rows[limit:]
    return rows


@lru_cache(maxsize=128)
def _pick_statement(kinds: int) -> str:
    # SQLite merges the parts of an ordered UNION ALL lazily, each from its own place in the
    # index, so that the cost follows the limit. `kind IN (...)` would read and sort the backlog.
    part = (
        "SELECT band, turn, seq FROM jobs WHERE ready > 0 AND ready = ? AND lane = ? AND kind = ?"
    )
    heads = " UNION ALL ".join([part] * kinds) + " ORDER BY 1, 2, 3 LIMIT ?"
    return (
        f"SELECT json_group_array(json_array(head.band, head.turn, {_PICKED}))"
        f" FROM ({heads}) AS head CROSS JOIN jobs ON jobs.seq = head.seq"
    )
