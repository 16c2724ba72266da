"""Ids of jobs and processes."""

from __future__ import annotations

import hashlib
import re
import threading

from penstock import runtime

_ID = re.compile("[0-9a-f]{32}")
_lock = threading.Lock()
_last = 0


def new_ids(count: int) -> list[str]:
    """`count` new ids: 32 hex digits, sorted by time within a process. A name, not a
    secret: ids made together follow each other."""
    global _last
    with _lock:
        fresh = int(runtime.now() * 1000) << 80 | int.from_bytes(runtime.random_bytes(10), "big")
        # Successive ids of one process must sort: step on from the last one when the
        # clock has not moved (or has moved back).
        start = fresh if fresh >> 80 > _last >> 80 else _last + 1
        _last = start + count - 1
    return [f"{start + i:032x}" for i in range(count)]


def new_id() -> str:
    return new_ids(1)[0]


def is_id(value: object) -> bool:
    """Whether this has the form of an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def new_ref() -> int:
    """Names a permit among those of all processes, whatever became of them: negative, random, and
    small enough for a double."""
    return -1 - (int.from_bytes(runtime.random_bytes(8), "big") >> 12)


def child_id(parent_id: str, kind: str, payload: str, occurrence: int) -> str:
    """The id of a job enqueued by another job: the same each time the parent is run again."""
    text = "\x1f".join((parent_id, kind, payload, str(occurrence)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
