"""Counts for operators: jobs by state, dead letters by error."""

from __future__ import annotations

import sqlite3

from penstock.adapters.sql.job_rows import kind_counts
from penstock.adapters.sqlite.database import sql
from penstock.ports.operators import MAX_GROUPS, DeadGroup, KindCounts


def counts(connection: sqlite3.Connection, tenant: str | None) -> list[KindCounts]:
    """How many jobs of each kind are in each state."""
    return kind_counts(connection.execute(sql("counts"), {"tenant": tenant}))


def queued(connection: sqlite3.Connection, tenant: str | None) -> int:
    """How many jobs are queued."""
    (count,) = connection.execute(sql("queued"), {"tenant": tenant}).fetchone()
    return int(count)


def dead_groups(connection: sqlite3.Connection, tenant: str | None) -> list[DeadGroup]:
    """Dead letters by kind and type of error."""
    rows = connection.execute(sql("dead_groups"), {"tenant": tenant, "most": MAX_GROUPS})
    return [DeadGroup(*row) for row in rows]
