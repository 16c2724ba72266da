"""Claims jobs in order, and leases them in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.fairness import Weights, place
from penstock.adapters.postgres.lane_claim import claim_in_lanes
from penstock.adapters.postgres.lanes import configure
from penstock.adapters.sql.chores import STAGE_LIMIT, Placed, adopt, fail_overdue
from penstock.model.job import Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Lease, Want

_PENDING = "SELECT is_member, crashed, next_at FROM penstock.pending_1($1, $2, $3, $4, $5)"
_CLAIM = "SELECT * FROM penstock.claim_1($1, $2, $3, $4, $5, $6)"


class Claimed(NamedTuple):
    leases: list[Lease]
    next_at: float | None
    member: bool


async def make_ready(
    tx: Transaction, want: Want, weights: Weights, lane_config: Callable[[str], LaneConfig]
) -> None:
    """What comes before a claim: let scheduled jobs join the line, fail queued jobs whose
    deadline has passed, fill in what was unknown of others."""
    await fail_overdue(tx)
    if due := await tx.fetch("due", tx.now, STAGE_LIMIT):
        await place(tx, due, weights)

    async def line_up(jobs: Sequence[Placed]) -> None:
        await configure(tx, {lane for _, lane, _, _ in jobs if lane}, lane_config)
        await place(tx, jobs, weights)

    await adopt(tx, want, line_up)


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
