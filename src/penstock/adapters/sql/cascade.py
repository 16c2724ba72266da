"""Children of cancelled jobs: which of them have still to be cancelled, too.

A cancel notes, in its own transaction, which of its jobs have attached children that are not
finished. These are then cancelled a batch at a time, by whoever cancelled the parents or, later, by
any process's upkeep; so a large family locks nobody out, and a kill leaves none of it behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.sql.dialect import Row, Sql

BATCH = 500
"""Children cancelled in one transaction."""


async def mark(tx: Sql, seqs: Sequence[int]) -> None:
    """Note that the children of these jobs, which were just cancelled, are to be, too."""
    if seqs:
        await tx.execute("mark_cascades", seqs=list(seqs))


async def parents(tx: Sql) -> list[str]:
    """Some of the jobs whose children are to be cancelled."""
    return [job_id for (job_id,) in await tx.fetch("cascade_parents", limit=BATCH)]


async def children(tx: Sql, parents: Sequence[str]) -> list[Row]:
    """Some of their children, locked."""
    return await tx.fetch("cascade_children", parents=parents, limit=BATCH)


async def forget(tx: Sql, parents: Sequence[str]) -> None:
    """Delete what is noted of those of them that have no more children to be cancelled."""
    await tx.execute("forget_cascades", parents=parents)
