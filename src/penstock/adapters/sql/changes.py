"""Writing to logs, inside the transaction that changes the job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.ports.queue import Topic


async def lock(tx: Sql, tenant: str, log: str) -> None:
    """Let nobody write to a log, or store jobs of it, until this transaction ends."""
    await tx.execute("lock_log", tenant=tenant, log=log, now=tx.now)


async def append(tx: Sql, entries: Sequence[LogEntry]) -> None:
    """Add entries, in order, each with its log's next version. Logs are locked in the order of
    their names."""
    by_log: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for entry in entries:
        told = (entry.what, entry.job_id, json.dumps(entry.data))
        by_log.setdefault((entry.tenant, entry.log), []).append(told)
    for (tenant, log), group in sorted(by_log.items()):
        whats, job_ids, datas = zip(*group, strict=True)
        await tx.execute(
            "append_changes",
            tenant=tenant,
            log=log,
            now=tx.now,
            entries=group,
            whats=whats,
            job_ids=job_ids,
            datas=datas,
        )
    if entries:
        tx.wake(Topic.FINISHED)
