"""Finds vectors that nothing needs any more, and plans their deletion: the same in every store that
speaks SQL.

They are kept for a while, because the same text may come back soon (a document uploaded again, a
model gone back to). So the first look notes them, and one after that time deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

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
