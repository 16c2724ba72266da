"""Writing to the logs, inside the transaction that changes the job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.ports.queue import Topic


def append(tx: Transaction, entries: Sequence[LogEntry]) -> None:
    """Add entries, in order, each with its log's next version."""
    by_log: dict[tuple[str, str], list[LogEntry]] = {}
    for entry in entries:
        by_log.setdefault((entry.tenant, entry.log), []).append(entry)
    for (tenant, log), group in by_log.items():
        name = {"tenant": tenant, "log": log}
        row = tx.execute(sql("log_version"), {**name, "count": len(group)}).fetchone()
        for version, entry in enumerate(group, row[0] - len(group) + 1):
            tx.execute(
                sql("log_change"),
                {
                    **name,
                    "version": version,
                    "at": tx.now,
                    "what": entry.what,
                    "job_id": entry.job_id,
                    "data": json.dumps(entry.data),
                },
            )
    if entries:
        tx.wake(Topic.FINISHED)
