"""Ensures that a message that is read twice is processed once.

The rows are those of the HTTP server's Idempotency-Key: begun under a lease, then completed. After
a crash between the two, the next reader processes the message again, with the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.intake.record import MessageRefused
from penstock.ports.access import AccessStore, Begun, Conflict, Done, InProgress

ROUTE = "kafka"
LEASE_SECONDS = 30.0
"""Less than the 45 s after which Kafka reassigns a dead member's partitions."""
LOOK_SECONDS = 0.5
"""Polling interval while another process handles the message."""


async def once(
    access: AccessStore,
    tenant: str,
    key: str,
    fingerprint: str,
    holder: str,
    make: Callable[[str], Awaitable[None]],
) -> bool:
    """Run `make` unless the message was processed before; returns whether it was run. `holder` is
    the same for all attempts at one message by one process, which continues what it has begun.
    `make` gets the id of what it creates. MessageRefused frees the key."""
    while True:
        begun = await access.begin(
            tenant, ROUTE, key, fingerprint, holder, holder, lease_seconds=LEASE_SECONDS
        )
        match begun:
            case Done():
                return False
            case Conflict():
                raise MessageRefused(
                    "key-reused", "the message-id was already used with different content"
                )
            case InProgress(id=other) if other != holder:
                await asyncio.sleep(LOOK_SECONDS)
            case Begun() | InProgress():
                break
    try:
        await make(begun.made)
    except MessageRefused:
        await access.abandon(tenant, ROUTE, key, holder)
        raise
    await access.finish(tenant, ROUTE, key, holder, 200, [], b"")
    return True
