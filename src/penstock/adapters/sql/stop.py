"""Stops and reopens logs, and adds notes to them.

Whoever changes jobs locks them first and their logs after, and a stop does so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adapters.sql import changes, selection
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.ports.queue import Stopped


async def stop(tx: Sql, tenant: str, log: str, running: bool, whole: bool) -> Stopped:
    """Close the log and cancel what of it is not finished, or, unless `running`, not begun.

    Jobs may be stored before the log is locked; these are few, and if one cannot be had at once
    the whole transaction is done again.
    """
    named = {"tenant": tenant, "log": log}
    rows = await tx.fetch("unfinished_of_log", **named)
    await changes.lock(tx, tenant, log)
    rows += await tx.fetch("unfinished_since", **named, seqs=[row["seq"] for row in rows])
    closed = await tx.execute("stop_log", **named, now=tx.now, whole=whole)
    if not whole:
        await tx.execute("stop_strictly", **named)
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


async def reopen(tx: Sql, tenant: str, log: str) -> None:
    named = {"tenant": tenant, "log": log}
    if await tx.one("is_stopped", **named) is not None:
        await changes.lock(tx, tenant, log)
        if await tx.execute("reopen_log", **named):
            await note(tx, tenant, log, "resumed", {})


async def note(tx: Sql, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
    await changes.append(tx, [LogEntry(tenant, log, what, "", dict(data))])


async def cancel_requeued(tx: Sql, seqs: Sequence[int]) -> set[int]:
    """Of jobs that were just queued again, those whose log is stopped are cancelled instead."""
    rows = await tx.fetch("cancel_requeued", seqs=list(seqs), now=tx.now)
    cancelled = {seq for (seq,) in rows}
    await selection.mark_cascades(tx, sorted(cancelled))
    return cancelled
