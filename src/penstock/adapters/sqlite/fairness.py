"""Positions in line: (band, turn, seq), with tenants taking weighted turns within a band."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from penstock.adapters.sqlite.transaction import Transaction, sql

Weights = Mapping[str, float]


def take_turns(
    tx: Transaction, lane: str, band: int, tenant: str, count: int, weights: Weights
) -> tuple[float, float]:
    """Reserve the tenant's next `count` turns: the turn before the first, and the step."""
    where = {"lane": lane, "band": band, "tenant": tenant}
    last: float = tx.execute(sql("last_turn"), where).fetchone()[0]
    step = 1.0 / weights.get(tenant, 1.0)
    tx.execute(sql("take_turns"), {**where, "last": last + step * count})
    return last, step


def place(tx: Transaction, jobs: Iterable[tuple[int, str, int, str]], weights: Weights) -> None:
    """Put jobs (seq, lane, band, tenant), in this order, at the end of their lines."""
    lines: dict[tuple[str, int, str], list[int]] = {}
    for seq, lane, band, tenant in jobs:
        lines.setdefault((lane, band, tenant), []).append(seq)
    batch: list[tuple[int, str, int, float]] = []
    for (lane, band, tenant), seqs in lines.items():
        last, step = take_turns(tx, lane, band, tenant, len(seqs), weights)
        batch += [(seq, lane, band, last + step * n) for n, seq in enumerate(seqs, 1)]
    if batch:
        tx.execute(sql("place"), {"batch": json.dumps(batch), "now": tx.now})
