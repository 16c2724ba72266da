"""Claims jobs in order, and leases them in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.fairness import Weights, place
from penstock.adapters.postgres.lane_claim import claim_in_lanes
from penstock.adapters.postgres.lanes import configure
from penstock.adapters.sql import changes
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.errors import describe
from penstock.model.job import HISTORY_LIMIT, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NO_LANE, Lease, Topic, Want

STAGE_LIMIT = 1000
ADOPT_LIMIT = 1000

_PENDING = "SELECT is_member, crashed, next_at FROM penstock.pending_1($1, $2, $3, $4, $5)"
_CLAIM = "SELECT * FROM penstock.claim_1($1, $2, $3, $4, $5, $6)"


class Claimed(NamedTuple):
    leases: list[Lease]
    next_at: float | None
    member: bool


async def make_ready(
    tx: Transaction,
    want: Want,
    weights: Weights,
    lane_config: Callable[[str], LaneConfig],
) -> None:
    """What comes before a claim: let scheduled jobs join the line, fail queued jobs whose
    deadline has passed, fill in what was unknown of others."""
    await fail_overdue(tx)
    if due := await tx.fetch("due", tx.now, STAGE_LIMIT):
        await place(tx, due, weights)
    await _adopt(tx, want, weights, lane_config)


async def claim(
    tx: Transaction, member: int, by_id: str, want: Want, lane_config: Callable[[str], LaneConfig]
) -> Claimed:
    """Lease jobs in lanes, then others, up to what is wanted of each."""
    kinds = list(want.kinds)
    is_member, crashed, _ = await tx.one(_PENDING, member, by_id, kinds, False, tx.now)
    if not is_member:
        return Claimed([], None, False)
    in_lanes = await claim_in_lanes(tx, member, want, lane_config) if want.lanes else []
    leases: list[Lease] = []
    if want.limit:
        ordinary = want.ordinary
        if ordinary is not None:
            ordinary -= sum(lease.priority > Priority.HIGH for lease in in_lanes)
        alone = crashed and want.crashed and not any(lease.crashes for lease in in_lanes)
        rows = await tx.fetch(_CLAIM, member, kinds, want.limit, alone, ordinary, tx.now)
        leases = [Lease(*row) for row in rows]
    _, _, next_at = await tx.one(_PENDING, member, by_id, kinds, want.lanes > 0, tx.now)
    return Claimed(in_lanes + leases, next_at, True)


async def fail_overdue(tx: Transaction) -> None:
    error = {
        "type": "DeadlineExceeded",
        "message": "its deadline passed before it could start",
        "retryable": False,
    }
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": error}
    rows = await tx.fetch(
        "overdue",
        tx.now,
        json.dumps(error),
        error["type"],
        json.dumps(record),
        HISTORY_LIMIT,
        STAGE_LIMIT,
    )
    await _announce_failed(tx, rows, error)


async def _adopt(
    tx: Transaction, want: Want, weights: Weights, lane_config: Callable[[str], LaneConfig]
) -> None:
    """Fill in jobs of our kinds that were enqueued where the kind was unknown."""
    for kind, defaults in want.kinds.items():
        rows = await tx.fetch("unknown", kind, ADOPT_LIMIT)
        if not rows:
            continue
        seqs = [row["seq"] for row in rows]
        await tx.execute("adopt", seqs, defaults.timeout, defaults.max_retries)
        placed = []
        for seq, band, tenant, payload in rows:
            try:
                lane = NO_LANE if defaults.lane_of is None else defaults.lane_of(payload)
            except Exception as error:
                await _refuse(tx, seq, error)
                continue
            placed.append((seq, lane, band, tenant))
        await configure(tx, {lane for _, lane, _, _ in placed if lane}, lane_config)
        await place(tx, placed, weights)


async def _refuse(tx: Transaction, seq: int, error: Exception) -> None:
    """A payload from which no lane can be computed: only its own job fails."""
    described = describe(error, retryable=False)
    described["message"] = f"its lane cannot be computed from the payload: {described['message']}"
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": described}
    rows = await tx.fetch(
        "UPDATE penstock.jobs SET state = 'failed', ready = 0, finished_at = $1, error = $2,"
        " error_type = $3, history = penstock.with_record(history, $4, $5) WHERE seq = $6"
        " RETURNING id, tenant, log",
        tx.now,
        json.dumps(described),
        described["type"],
        json.dumps(record),
        HISTORY_LIMIT,
        seq,
    )
    await _announce_failed(tx, rows, described)


async def _announce_failed(tx: Transaction, rows: list[Any], error: dict[str, Any]) -> None:
    entries = [
        LogEntry(row["tenant"], row["log"], "failed", row["id"], {"error": error})
        for row in rows
        if row["log"] is not None
    ]
    await changes.append(tx, entries)
    if rows:
        tx.wake(Topic.FINISHED)
