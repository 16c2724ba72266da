"""Positions in line: (band, turn, seq), with tenants taking weighted turns within a band."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.adapters.postgres.database import Transaction

Weights = Mapping[str, float]


def step_of(tenant: str, weights: Weights) -> float:
    """How far apart the turns of a tenant are."""
    return 1.0 / weights.get(tenant, 1.0)


async def place(
    tx: Transaction, jobs: Iterable[tuple[int, str, int, str]], weights: Weights
) -> None:
    """Put jobs (seq, lane, band, tenant), in this order, at the end of their lines."""
    lines: dict[tuple[int, str], dict[str, list[int]]] = {}
    for seq, lane, band, tenant in jobs:
        lines.setdefault((band, tenant), {}).setdefault(lane, []).append(seq)
    batch: list[tuple[int, str, int, float]] = []
    for (band, tenant), by_lane in sorted(lines.items()):
        step, lanes = step_of(tenant, weights), sorted(by_lane)
        counts = [len(by_lane[lane]) for lane in lanes]
        firsts = await tx.fetchval(
            "SELECT penstock.take_turns_1($1, $2, $3, $4, $5)", lanes, band, tenant, counts, step
        )
        for lane, first in zip(lanes, firsts, strict=True):
            batch += [(seq, lane, band, first + step * n) for n, seq in enumerate(by_lane[lane], 1)]
    if batch:
        batch.sort()
        await tx.execute("place", *zip(*batch, strict=True), tx.now)
