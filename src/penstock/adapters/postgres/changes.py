"""Writing to the logs, inside the transaction that changes the job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.ports.queue import Topic


async def lock(tx: Transaction, tenant: str, log: str) -> None:
    """Let nobody write to a log, or store jobs that report to it, until this transaction ends."""
    await tx.execute(
        "SELECT penstock.log_changes_1($1, $2, $3, '{}', '{}', '{}')", tenant, log, tx.now
    )


async def append(tx: Transaction, entries: Sequence[LogEntry]) -> None:
    """Add entries, in order, each with its log's next version. Logs are locked in the order of
    their names."""
    by_log: dict[tuple[str, str], list[LogEntry]] = {}
    for entry in entries:
        by_log.setdefault((entry.tenant, entry.log), []).append(entry)
    for (tenant, log), group in sorted(by_log.items()):
        await tx.execute(
            "SELECT penstock.log_changes_1($1, $2, $3, $4, $5, $6)",
            tenant,
            log,
            tx.now,
            [entry.what for entry in group],
            [entry.job_id for entry in group],
            [json.dumps(entry.data) for entry in group],
        )
    if entries:
        tx.wake(Topic.FINISHED)
