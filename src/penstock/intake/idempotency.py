"""Ensures that a message that is read twice is processed once.

The rows are those of the HTTP server's Idempotency-Key: begun under a lease, then answered. After a
crash between the two the next reader carries the message out again, under the id of the first time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.adapters.sql.access import AccessStore
from penstock.intake.record import MessageRefused
from penstock.model.access import Begun, Conflict, Done, InProgress

ROUTE = "kafka"
LEASE_SECONDS = 30.0
"""Less than the 45 s after which Kafka gives a dead member's partitions to another."""
LOOK_SECONDS = 0.5
"""Between two looks at what somebody else is carrying out."""


async def once(
    access: AccessStore,
    tenant: str,
    key: str,
    fingerprint: str,
    holder: str,
    make: Callable[[str], Awaitable[None]],
) -> bool:
    """Whether this was the first time. `holder` is the same for every try at one message by one
    process: what it has begun itself, it goes on with. `make` gets the id of what it makes. Refused
    frees the key."""
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
