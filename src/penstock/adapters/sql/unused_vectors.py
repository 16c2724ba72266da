"""Plans the deletion of unused vectors, shared by all SQL stores.

They are kept for a while, because the same text may come back soon (a document uploaded again, a
model gone back to). So the first look notes them, and one after that time deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.adapters.sql.dialect import Sql

Key = tuple[Any, ...]
"""Tenant, model and hash, as the store knows them."""


class StoredVector(NamedTuple):
    """A vector, as it was found."""

    key: Key
    used: bool
    """A chunk, staged or live, is of that text, and its model serves or is to."""
    unused_since: float | None
    """When it was first seen that nothing needs it; None: that was not noted."""


class VectorPlan(NamedTuple):
    delete: list[Key]
    note: list[Key]
    """Found unused for the first time."""
    unnote: list[Key]
    """Used again."""

    def __bool__(self) -> bool:
        return any(self[:])


def plan(looked: Iterable[StoredVector], now: float, keep_seconds: float) -> VectorPlan:
    made = VectorPlan([], [], [])
    for key, used, since in looked:
        if used:
            if since is not None:
                made.unnote.append(key)
        elif (now if since is None else since) <= now - keep_seconds:
            made.delete.append(key)
        elif since is None:
            made.note.append(key)
    return made


async def look(tx: Sql, after: Key, limit: int) -> list[StoredVector]:
    """The next vectors behind a key, by an index that has all that is asked of them."""
    tenant, model, hash_ = after
    rows = await tx.fetch("look_at_vectors", tenant=tenant, model=model, hash=hash_, limit=limit)
    return [StoredVector(tuple(row)[:3], bool(row["used"]), row["since"]) for row in rows]


async def look_now(tx: Sql, after: Key, limit: int) -> tuple[list[StoredVector], float]:
    """As `look`, with the queue's clock."""
    return await look(tx, after, limit), tx.now


async def purge(tx: Sql, after: Key, keep_seconds: float, limit: int) -> int:
    """Do what is to be done about the next ones; how many were deleted."""
    delete, note, unnote = plan(await look(tx, after, limit), tx.now, keep_seconds)
    await tx.execute_many("delete_vector", _named(delete))
    await tx.execute_many("forget_unused", _named(delete + unnote))
    await tx.execute_many("note_unused", [key | {"now": tx.now} for key in _named(note)])
    return len(delete)


def _named(keys: Sequence[Key]) -> list[dict[str, Any]]:
    return [{"tenant": tenant, "model": model, "hash": hash_} for tenant, model, hash_ in keys]
