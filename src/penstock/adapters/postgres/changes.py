"""Writing to the logs of tasks, inside the transaction that changes the job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.ports.queue import Topic


async def lock(tx: Transaction, tenant: str, task: str) -> None:
    """Let nobody write to a log, or store jobs of its task, until this transaction ends."""
    await tx.execute(
        "SELECT penstock.log_changes_1($1, $2, $3, '{}', '{}', '{}')", tenant, task, tx.now
    )


async def append(tx: Transaction, entries: Sequence[LogEntry]) -> None:
    """Add entries, in order, each with its log's next version. Logs are locked in the order of
    their names."""
    by_log: dict[tuple[str, str], list[LogEntry]] = {}
    for entry in entries:
        by_log.setdefault((entry.tenant, entry.task), []).append(entry)
    for (tenant, task), group in sorted(by_log.items()):
        await tx.execute(
            "SELECT penstock.log_changes_1($1, $2, $3, $4, $5, $6)",
            tenant,
            task,
            tx.now,
            [entry.what for entry in group],
            [entry.job_id for entry in group],
            [json.dumps(entry.data) for entry in group],
        )
    if entries:
        tx.wake(Topic.FINISHED)
