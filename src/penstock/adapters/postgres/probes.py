"""Who probes which troubled lane, and what comes of it."""

from __future__ import annotations

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.lane_settle import return_attempt
from penstock.lanes import breaker

DUE = (
    "FROM penstock.lanes WHERE (step > 0 OR suspect IS NOT NULL)"
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
    was_open, retry_at = lane.open, lane.retry_at
    breaker.probed(lane, ok, tx.now)
    if lane.open and not was_open:
        await return_attempt(tx, lane)
    await store.save(tx, [lane])
    if lane.retry_at < retry_at:
        await store.wake_lane(tx, name)


async def try_at_once(tx: Transaction) -> None:
    """A process starts: what it needs may be back, so one try is made without waiting."""
    rows = await tx.fetch(
        "SELECT name FROM penstock.lanes"
        " WHERE (step > 0 AND retry_at > $1) OR blocked_why = 'credentials'",
        tx.now,
    )
    names = [name for (name,) in rows]
    states = await store.lock(tx, names)
    changed = {}
    for lane in states.values():
        if lane.open and lane.retry_at > tx.now:
            lane.retry_at = tx.now
            changed[lane.name] = lane
        if lane.blocked_why == "credentials":
            # It may have come with new credentials: one more refusal blocks the lane again.
            lane.blocked_until, lane.blocked_why = 0.0, None
            lane.refused = breaker.REFUSALS - 1
            changed[lane.name] = lane
    await store.save(tx, changed.values())
    for name in changed:
        await store.wake_lane(tx, name)
