"""Tasks that take no more jobs; and what is noted in the log of a task beside its jobs.

Whoever changes jobs locks them first and the logs of their tasks after, and a stop does so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adapters.postgres import cascade, changes, selection
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.ports.queue import Stopped


async def stop(tx: Transaction, tenant: str, task: str, running: bool, whole: bool) -> Stopped:
    """Close the task and cancel what of it is not finished, or, unless `running`, not begun.

    Jobs may be stored before the log is locked; these are few, and if one cannot be had at once
    the whole transaction is done again.
    """
    rows = await tx.fetch("unfinished", tenant, task)
    await changes.lock(tx, tenant, task)
    rows += await tx.fetch("unfinished_since", tenant, task, [row["seq"] for row in rows])
    closed = await tx.execute(
        "INSERT INTO penstock.stopped_tasks (tenant, task, at, whole_before)"
        " VALUES ($1, $2, $3, CASE WHEN $4 THEN penstock.clock() END) ON CONFLICT DO NOTHING",
        tenant,
        task,
        tx.now,
        whole,
    )
    if not whole:
        strict = "UPDATE penstock.stopped_tasks SET whole_before = NULL"
        await tx.execute(f"{strict} WHERE tenant = $1 AND task = $2", tenant, task)
    if running:
        ended = rows
        await selection.cancel_rows(tx, ended)
    else:
        cancelled = await cancel_requeued(tx, [row["seq"] for row in rows])
        ended = [row for row in rows if row["seq"] in cancelled]
        await selection.announce(tx, ended, "cancelled")
    outcome = Stopped(len(ended), len(rows) - len(ended))
    if closed or ended:
        await note(tx, tenant, task, "stopped", outcome._asdict())
    return outcome


async def reopen(tx: Transaction, tenant: str, task: str) -> None:
    if await tx.fetchval("stopped", [tenant], [task]):
        await changes.lock(tx, tenant, task)
        here = "DELETE FROM penstock.stopped_tasks WHERE tenant = $1 AND task = $2"
        if await tx.execute(here, tenant, task):
            await note(tx, tenant, task, "resumed", {})


async def note(tx: Transaction, tenant: str, task: str, what: str, data: Mapping[str, Any]) -> None:
    await changes.append(tx, [LogEntry(tenant, task, what, "", dict(data))])


async def cancel_requeued(tx: Transaction, seqs: Sequence[int]) -> set[int]:
    """Of jobs that were just queued again, those whose task is stopped are cancelled instead."""
    cancelled = {seq for (seq,) in await tx.fetch("cancel_requeued", list(seqs), tx.now)}
    await cascade.mark(tx, sorted(cancelled))
    return cancelled
