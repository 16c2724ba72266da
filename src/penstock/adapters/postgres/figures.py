"""Counts for operators: jobs by state, dead letters by error."""

from __future__ import annotations

import json

from penstock.adapters.postgres.database import LONG_SECONDS, Connection, Database
from penstock.adapters.sql.job_rows import kind_counts
from penstock.ports.operators import MAX_GROUPS, DeadGroup, KindCounts


async def counts(
    database: Database, connection: Connection, tenant: str | None
) -> list[KindCounts]:
    """How many jobs of each kind are in each state."""
    statement = database.sql("counts")
    return kind_counts(await connection.fetch(statement, tenant, timeout=LONG_SECONDS))


async def queued(database: Database, connection: Connection, tenant: str | None) -> int:
    """How many jobs are queued."""
    count: int = await connection.fetchval(database.sql("queued"), tenant, timeout=LONG_SECONDS)
    return count


async def dead_groups(
    database: Database, connection: Connection, tenant: str | None
) -> list[DeadGroup]:
    """Dead letters by kind and type of error."""
    statement = database.sql("dead_groups")
    rows = await connection.fetch(statement, tenant, MAX_GROUPS, timeout=LONG_SECONDS)
    return [
        DeadGroup(kind, error_type, count, first_at, last_at, _message(error), newest_id)
        for kind, error_type, count, first_at, last_at, error, newest_id in rows
    ]


def _message(error: str | None) -> str:
    # Not by the server, for which some characters are no JSON.
    return "" if error is None else str(json.loads(error)["message"])
