"""Claims jobs in order, and leases them in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.adapters.sql.chores import STAGE_LIMIT, Placed, adopt, fail_overdue
from penstock.adapters.sqlite.fairness import Weights, place
from penstock.adapters.sqlite.lane_claim import claim_in_lanes, next_look
from penstock.adapters.sqlite.lanes import configure
from penstock.adapters.sqlite.pick import pick
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.lanes.waiting import Picked, within
from penstock.model.job import Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Lease, Want


class Claimed(NamedTuple):
    leases: list[Lease]
    next_at: float | None


def claim(
    tx: Transaction,
    member: int,
    want: Want,
    weights: Weights,
    lane_config: Callable[[str], LaneConfig],
) -> Claimed:
    """Lease up to `want.limit` jobs to `member`, the first in line first.

    The same trip lets scheduled jobs join the line and fails queued jobs whose deadline has
    passed.
    """
    look = {"now": tx.now, "unknown": UNKNOWN_LANE}
    due, overdue, unknown, crashed, lines, budgets = tx.execute(sql("pending"), look).fetchone()
    if overdue:
        run(fail_overdue(tx.shared))
    if due:
        _stage(tx, weights)
    if unknown or due:
        _adopt(tx, want, weights, lane_config)
    lines = lines or due or unknown
    in_lanes: list[Lease] = []
    if lines and want.lanes:
        in_lanes = claim_in_lanes(tx, member, want, lane_config, budgets)
    kinds = tuple(want.kinds)
    ordinary = want.ordinary
    if ordinary is not None:
        ordinary -= sum(lease.priority > Priority.HIGH for lease in in_lanes)
    picked = pick(tx, 1, NO_LANE, kinds, want.limit) if want.limit else []
    alone = want.crashed and not any(lease.crashes for lease in in_lanes)
    if (crashed or due) and alone and want.limit:
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
    async def line_up(jobs: Sequence[Placed]) -> None:
        configure(tx, {lane for _, lane, _, _ in jobs if lane}, lane_config)
        place(tx, jobs, weights)

    run(adopt(tx.shared, want, line_up))
