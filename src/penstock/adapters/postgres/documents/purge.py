"""Vectors that nothing needs any more are noted, and deleted after a while.

What is staged while vectors are being deleted would count on some of them. So whoever stages holds
a lock that those who stage share, and whoever deletes has it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.unused_vectors import Key, StoredVector, plan

BEFORE_ALL = (-1, -1, "")
_LOCK = "hashtextextended('penstock vectors ' || 'penstock.vectors'::regclass::oid, 0)"
_KEYS = "unnest($1::integer[], $2::integer[], $3::text[]) AS k (tenant, model, hash)"


async def staging(tx: Transaction) -> None:
    """Until this transaction ends, no vector is deleted."""
    await tx.execute(f"SELECT pg_advisory_xact_lock_shared({_LOCK})")


async def look(tx: Transaction, after: Key | None, limit: int) -> list[StoredVector]:
    """The next vectors behind a key."""
    rows = await tx.fetch("look_at_vectors", *(after or BEFORE_ALL), limit)
    return [StoredVector(tuple(row)[:3], row["used"], row["since"]) for row in rows]


async def purge(tx: Transaction, after: Key | None, keep_seconds: float, limit: int) -> int:
    """Do what is to be done about the next ones, unless somebody stages at the moment; how many
    were deleted."""
    if not await tx.fetchval(f"SELECT pg_try_advisory_xact_lock({_LOCK})"):
        return 0
    # Whoever wants another model waits until it is clear which vectors are left.
    await tx.execute("SELECT FROM penstock.serving FOR SHARE")
    delete, note, unnote = plan(await look(tx, after, limit), tx.now, keep_seconds)
    await _delete(tx, "vectors", delete)
    await _delete(tx, "unused_vectors", delete + unnote)
    if note:
        insert = f"INSERT INTO penstock.unused_vectors SELECT k.*, $4::float8 FROM {_KEYS}"
        await tx.execute(insert, *_columns(note), tx.now)
    return len(delete)


async def _delete(tx: Transaction, table: str, keys: Sequence[Key]) -> None:
    if keys:
        await tx.execute(
            f"DELETE FROM penstock.{table} AS t USING {_KEYS}"
            " WHERE (t.tenant, t.model, t.hash) = (k.tenant, k.model, k.hash)",
            *_columns(keys),
        )


def _columns(keys: Sequence[Key]) -> list[list[Any]]:
    return [list(column) for column in zip(*keys, strict=True)]
