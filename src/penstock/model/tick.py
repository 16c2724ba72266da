"""A tick: a time at which a periodic job is due, and the one job that stands for it.

The job's id and its key both follow from kind and time. So whoever would store the job of a tick
finds the one that is there, and whoever wants to know of it needs no search.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

_PREFIX = "tick "


def tick_key(tick: float) -> str:
    """What a person sees: `tick 2026-11-16T03:00:00+00:00`."""
    return _PREFIX + datetime.fromtimestamp(tick, UTC).isoformat()


def tick_id(kind: str, tick: float) -> str:
    """Ordered by time, as other ids are."""
    text = f"{kind}\x1f{tick_key(tick)}"
    digest = hashlib.blake2b(text.encode(), digest_size=10).digest()
    return f"{int(tick * 1000) << 80 | int.from_bytes(digest, 'big'):032x}"


def tick_of(job_id: str, kind: str, key: str | None) -> float | None:
    """The tick that a job stands for; None for one that was enqueued otherwise, also if somebody
    gave it the key of a tick."""
    if key is None or not key.startswith(_PREFIX):
        return None
    try:
        tick = datetime.fromisoformat(key.removeprefix(_PREFIX)).timestamp()
    except ValueError:
        return None
    return tick if tick_id(kind, tick) == job_id else None
