"""Logs that take no more jobs; and what is noted in a log beside its jobs.

Whoever changes jobs locks them first and their logs after, and a stop does so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adapters.postgres import cascade, changes, selection
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.ports.queue import Stopped


async def stop(tx: Transaction, tenant: str, log: str, running: bool, whole: bool) -> Stopped:
    """Close the log and cancel what of it is not finished, or, unless `running`, not begun.

    Jobs may be stored before the log is locked; these are few, and if one cannot be had at once
    the whole transaction is done again.
    """
    rows = await tx.fetch("unfinished", tenant, log)
    await changes.lock(tx, tenant, log)
    rows += await tx.fetch("unfinished_since", tenant, log, [row["seq"] for row in rows])
    closed = await tx.execute(
        "INSERT INTO penstock.stopped_logs (tenant, log, at, whole_before)"
        " VALUES ($1, $2, $3, CASE WHEN $4 THEN penstock.clock() END) ON CONFLICT DO NOTHING",
        tenant,
        log,
        tx.now,
        whole,
    )
    if not whole:
        strict = "UPDATE penstock.stopped_logs SET whole_before = NULL"
        await tx.execute(f"{strict} WHERE tenant = $1 AND log = $2", tenant, log)
    if running:
        ended = rows
        await selection.cancel_rows(tx, ended)
    else:
        cancelled = await cancel_requeued(tx, [row["seq"] for row in rows])
        ended = [row for row in rows if row["seq"] in cancelled]
        await selection.announce(tx, ended, "cancelled")
    outcome = Stopped(len(ended), len(rows) - len(ended))
    if closed or ended:
        await note(tx, tenant, log, "stopped", outcome._asdict())
    return outcome


async def reopen(tx: Transaction, tenant: str, log: str) -> None:
    if await tx.fetchval("stopped", [tenant], [log]):
        await changes.lock(tx, tenant, log)
        here = "DELETE FROM penstock.stopped_logs WHERE tenant = $1 AND log = $2"
        if await tx.execute(here, tenant, log):
            await note(tx, tenant, log, "resumed", {})


async def note(tx: Transaction, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
    await changes.append(tx, [LogEntry(tenant, log, what, "", dict(data))])


async def cancel_requeued(tx: Transaction, seqs: Sequence[int]) -> set[int]:
    """Of jobs that were just queued again, those whose log is stopped are cancelled instead."""
    cancelled = {seq for (seq,) in await tx.fetch("cancel_requeued", list(seqs), tx.now)}
    await cascade.mark(tx, sorted(cancelled))
    return cancelled
