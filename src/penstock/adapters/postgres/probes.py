"""Assigns probes of troubled lanes to processes, and records their results."""

from __future__ import annotations

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.lane_settle import return_attempts
from penstock.lanes import breaker

DUE = (
    "FROM penstock.lanes WHERE (step > 0 OR suspect IS NOT NULL)"
    f" AND (step > 0 OR suspect_at + {breaker.SUSPICION_SECONDS} > $1)"
    " AND probed_at + probe_seconds <= $1 AND coalesce(health_url, address) IS NOT NULL"
)


async def take(tx: Transaction) -> list[tuple[str, str]]:
    """The lanes (name, where) this process is to probe now; nobody else does meanwhile."""
    rows = await tx.fetch(
        f"SELECT name, coalesce(health_url, address) AS place {DUE}"
        " ORDER BY (parent IS NULL), name FOR UPDATE SKIP LOCKED",
        tx.now,
    )
    names = [row["name"] for row in rows]
    await tx.execute(
        "UPDATE penstock.lanes SET probed_at = $1 WHERE name = ANY ($2)", tx.now, names
    )
    return [(row["name"], row["place"]) for row in rows]


async def note(tx: Transaction, name: str, ok: bool) -> None:
    """What the probe found."""
    lane = (await store.lock(tx, [name])).get(name)
    if lane is None:
        return
    retry_at = lane.retry_at
    await return_attempts(tx, breaker.probed(lane, ok, tx.now).spared)
    await store.save(tx, [lane])
    if lane.retry_at < retry_at:
        await store.wake_lane(tx, name)


async def try_at_once(tx: Transaction) -> None:
    """A process starts: what it needs may be back, so one try is made without waiting."""
    rows = await tx.fetch(
        "SELECT name FROM penstock.lanes WHERE (step > 0 AND retry_at > $1) OR blocked_why = $2",
        tx.now,
        breaker.CREDENTIALS,
    )
    names = [name for (name,) in rows]
    states = await store.lock(tx, names)
    changed = {}
    for lane in states.values():
        if lane.open and lane.retry_at > tx.now:
            lane.retry_at = tx.now
            changed[lane.name] = lane
        if lane.blocked_why == breaker.CREDENTIALS:
            # It may have come with new credentials: one more refusal blocks the lane again.
            lane.blocked_until, lane.blocked_why = 0.0, None
            lane.refusers = breaker.PARDONED
            changed[lane.name] = lane
    await store.save(tx, changed.values())
    for name in changed:
        await store.wake_lane(tx, name)
