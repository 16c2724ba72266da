"""A tick: a time at which a periodic job is due, and the one job that stands for it.

The job's id and its key both follow from the time and the kind, or the schedule that is a row. So
whoever would store the job of a tick finds the one that is there, and whoever wants to know of it
needs no search.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

_PREFIX = "tick "
_OF = " of "


def tick_key(tick: float) -> str:
    """What a person sees: `tick 2026-11-16T03:00:00+00:00`."""
    return _PREFIX + datetime.fromtimestamp(tick, UTC).isoformat()


def schedule_tick_key(name: str, tick: float) -> str:
    """What a person sees: `tick 2026-11-16T03:00:00+00:00 of nightly`."""
    return f"{tick_key(tick)}{_OF}{name}"


def schedule_tick_id(tenant: str, name: str, tick: float) -> str:
    """As `tick_id`; schedules of two tenants may have one name."""
    return tick_id(f"{tenant}\x1f{name}\x1f", tick)


def tick_id(kind: str, tick: float) -> str:
    """Ordered by time, as other ids are."""
    text = f"{kind}\x1f{tick_key(tick)}"
    digest = hashlib.blake2b(text.encode(), digest_size=10).digest()
    return f"{int(tick * 1000) << 80 | int.from_bytes(digest, 'big'):032x}"


def tick_of(job_id: str, kind: str, key: str | None, tenant: str | None = None) -> float | None:
    """The tick that a job stands for; None for one that was enqueued otherwise, also if somebody
    gave it the key of a tick. Of a schedule that is a row if `tenant` is given, else of a kind."""
    if key is None or not key.startswith(_PREFIX):
        return None
    at, _, name = key.removeprefix(_PREFIX).partition(_OF)
    try:
        tick = datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
    if name:
        known = tenant is not None and schedule_tick_id(tenant, name, tick) == job_id
    else:
        known = tick_id(kind, tick) == job_id
    return tick if known else None
