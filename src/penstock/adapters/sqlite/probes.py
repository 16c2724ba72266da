"""Assigns probes of troubled lanes to processes, and records their results."""

from __future__ import annotations

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.lane_settle import return_attempts
from penstock.adapters.sqlite.transaction import Transaction
from penstock.lanes import breaker

DUE = (
    "FROM lanes WHERE (step > 0 OR suspect IS NOT NULL)"
    f" AND (step > 0 OR suspect_at + {breaker.SUSPICION_SECONDS} > ?1)"
    " AND probed_at + probe_seconds <= ?1 AND coalesce(health_url, address) IS NOT NULL"
)


def take(tx: Transaction) -> list[tuple[str, str]]:
    """The lanes (name, where) this process is to probe now; nobody else does meanwhile."""
    rows = tx.execute(f"SELECT name, coalesce(health_url, address) {DUE}", (tx.now,)).fetchall()
    for name, _ in rows:
        tx.execute("UPDATE lanes SET probed_at = ? WHERE name = ?", (tx.now, name))
    return rows


def note(tx: Transaction, name: str, ok: bool) -> None:
    """What the probe found."""
    lane = store.load(tx, name)
    if lane is None:
        return
    retry_at = lane.retry_at
    return_attempts(tx, breaker.probed(lane, ok, tx.now).spared)
    store.save(tx, lane)
    if lane.retry_at < retry_at:
        store.wake_lane(tx, name)


def try_at_once(tx: Transaction) -> None:
    """A process starts: what it needs may be back, so one try is made without waiting."""
    rows = tx.execute("SELECT name FROM lanes WHERE step > 0 AND retry_at > ?", (tx.now,))
    for (name,) in rows.fetchall():
        tx.execute("UPDATE lanes SET retry_at = ? WHERE name = ?", (tx.now, name))
        store.wake_lane(tx, name)
    # It may have come with new credentials: one more refusal blocks the lane again.
    rows = tx.execute("SELECT name FROM lanes WHERE blocked_why = ?", (breaker.CREDENTIALS,))
    for (name,) in rows.fetchall():
        tx.execute(
            "UPDATE lanes SET blocked_until = 0, blocked_why = NULL, refusers = ? WHERE name = ?",
            (breaker.PARDONED, name),
        )
        store.wake_lane(tx, name)
