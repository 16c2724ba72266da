"""Claims jobs in order, and leases them in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from penstock.adapters.sql import changes
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite import takeover
from penstock.adapters.sqlite.fairness import Weights, place
from penstock.adapters.sqlite.lane_claim import claim_in_lanes, next_look
from penstock.adapters.sqlite.lanes import configure
from penstock.adapters.sqlite.pick import pick
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.errors import describe
from penstock.lanes.waiting import Picked, within
from penstock.model.job import HISTORY_LIMIT, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Lease, Topic, Want

STAGE_LIMIT = 1000
ADOPT_LIMIT = 1000


class Claimed(NamedTuple):
    leases: list[Lease]
    next_at: float | None


def claim(
    tx: Transaction,
    member: int,
    want: Want,
    weights: Weights,
    folder: Path,
    lane_config: Callable[[str], LaneConfig],
) -> Claimed:
    """Lease up to `want.limit` jobs to `member`, the first in line first.

    The same trip takes back what lapsed members held, lets scheduled jobs join the line and
    fails queued jobs whose deadline has passed.
    """
    look = {"member": member, "now": tx.now, "unknown": UNKNOWN_LANE}
    any_lapsed, due, overdue, unknown, crashed, lines = tx.execute(sql("pending"), look).fetchone()
    if any_lapsed:
        takeover.lapsed(tx, folder, member)
    if overdue:
        fail_overdue(tx)
    if due:
        _stage(tx, weights)
    if unknown or due:
        _adopt(tx, want, weights, lane_config)
    lines = lines or due or unknown or any_lapsed
    in_lanes = claim_in_lanes(tx, member, want, lane_config) if lines and want.lanes else []
    kinds = tuple(want.kinds)
    ordinary = want.ordinary
    if ordinary is not None:
        ordinary -= sum(lease.priority > Priority.HIGH for lease in in_lanes)
    picked = pick(tx, 1, NO_LANE, kinds, want.limit) if want.limit else []
    alone = want.crashed and not any(lease.crashes for lease in in_lanes)
    if (crashed or due or any_lapsed) and alone and want.limit:
        picked = (pick(tx, 2, NO_LANE, kinds, 1) + picked)[: want.limit]
    leases = _lease(tx, member, within(picked, ordinary))
    soon = [next_look(tx, kinds) if lines and want.lanes else None]
    if len(leases) < want.limit or not want.limit:
        soon.append(_next_due(tx))
    next_at = min((at for at in soon if at is not None), default=None)
    return Claimed(in_lanes + leases, next_at)


def claim_new(tx: Transaction, member: int, kinds: tuple[str, ...], limit: int) -> list[Lease]:
    """Lease up to `limit` jobs to `member` while it waits: what is in line, and nothing else that
    a claim sees to."""
    return _lease(tx, member, pick(tx, 1, NO_LANE, kinds, limit))


def _lease(tx: Transaction, member: int, picked: list[Picked]) -> list[Lease]:
    leases = [one.lease for one in picked]
    if leases:
        seqs = json.dumps([lease.seq for lease in leases])
        tx.execute(sql("lease"), {"member": member, "now": tx.now, "seqs": seqs})
        # The last of each line is the latest.
        served = {(one.lease.lane, one.band): one.turn for one in picked}
        for (lane, band), turn in served.items():
            tx.execute(sql("serve"), {"lane": lane, "band": band, "turn": turn})
    return leases


def fail_overdue(tx: Transaction) -> None:
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
    _announce_failed(tx, rows, error)


def _stage(tx: Transaction, weights: Weights) -> None:
    """Let scheduled jobs whose time has come join the line."""
    parameters = {"now": tx.now, "limit": STAGE_LIMIT}
    if due := tx.execute(sql("due"), parameters).fetchall():
        place(tx, due, weights)


def _next_due(tx: Transaction) -> float | None:
    """When the next scheduled job, or a queued job's deadline, comes up."""
    row = tx.execute(sql("next_due")).fetchone()
    return min((at for at in row if at is not None), default=None)


def _adopt(
    tx: Transaction, want: Want, weights: Weights, lane_config: Callable[[str], LaneConfig]
) -> None:
    """Fill in jobs of our kinds that were enqueued where the kind was unknown."""
    for kind, defaults in want.kinds.items():
        rows = tx.execute(
            "SELECT seq, band, tenant, payload FROM jobs"
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
            placed = []
            for seq, band, tenant, payload in rows:
                try:
                    lane = NO_LANE if defaults.lane_of is None else defaults.lane_of(payload)
                except Exception as error:
                    _refuse(tx, seq, error)
                    continue
                placed.append((seq, lane, band, tenant))
            configure(tx, {lane for _, lane, _, _ in placed if lane}, lane_config)
            place(tx, placed, weights)


def _refuse(tx: Transaction, seq: int, error: Exception) -> None:
    """A payload from which no lane can be computed: only its own job fails."""
    described = describe(error, retryable=False)
    described["message"] = f"its lane cannot be computed from the payload: {described['message']}"
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": described}
    rows = tx.execute(
        "UPDATE jobs SET state = 'failed', ready = 0, finished_at = ?, error = ?,"
        " history = json_insert(history, '$[#]', json(?)) WHERE seq = ?"
        " RETURNING id, tenant, log",
        (tx.now, json.dumps(described), json.dumps(record), seq),
    ).fetchall()
    _announce_failed(tx, rows, described)


def _announce_failed(tx: Transaction, rows: list[Any], error: dict[str, Any]) -> None:
    entries = [
        LogEntry(tenant, log, "failed", job_id, {"error": error})
        for job_id, tenant, log in rows
        if log is not None
    ]
    run(changes.append(tx.shared, entries))
    tx.wake(Topic.FINISHED)
