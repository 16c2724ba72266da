"""Children of cancelled jobs: which of them have still to be cancelled, too.

A cancel notes, in its own transaction, which of its jobs have attached children that are not
finished. These are then cancelled a batch at a time, by whoever cancelled the parents or, later, by
any process's upkeep; so a large family locks nobody out, and a kill leaves none of it behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.adapters.postgres.database import Transaction

BATCH = 500
"""Children cancelled in one transaction."""
PENDING = "SELECT EXISTS (SELECT 1 FROM penstock.cascades)"

_PARENTS = "SELECT id FROM penstock.cascades ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED"
"""No two processes work on the same family."""


async def mark(tx: Transaction, seqs: Sequence[int]) -> None:
    """Note that the children of these jobs, which were just cancelled, are to be, too."""
    if seqs:
        await tx.execute("mark_cascades", list(seqs))


async def parents(tx: Transaction) -> list[str]:
    """Some of the jobs whose children are to be cancelled."""
    return [job_id for (job_id,) in await tx.fetch(_PARENTS, BATCH)]


async def children(tx: Transaction, parents: Sequence[str]) -> list[Any]:
    """Some of their children, locked: seq, id, tenant, log, state."""
    return await tx.fetch("cascade_children", parents, BATCH)


async def forget(tx: Transaction, parents: Sequence[str]) -> None:
    """Delete what is noted of those of them that have no more children to be cancelled."""
    await tx.execute("forget_cascades", parents)
