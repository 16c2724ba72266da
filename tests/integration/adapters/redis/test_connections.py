"""No connection is left open, whenever the queue is closed."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from penstock.adapters.redis import RedisQueue
from penstock.adapters.redis.connections import Channel
from penstock.errors import QueueError
from tests.support.database_servers import redis_url
from tests.support.waiting import until


@pytest.fixture
def queue() -> RedisQueue:
    return RedisQueue(f"{redis_url('redis')}?namespace={uuid4().hex}")


async def test_subscription_of_a_queue_that_is_closed_at_once_ends(queue: RedisQueue) -> None:
    await queue.open()
    await queue.close()
    first: Any = queue._wakeups._first
    assert not first.is_connected


async def test_connections_end_though_a_close_did_not_wait_for_the_trip_under_way(
    queue: RedisQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.open()
    connections = queue.connections
    await connections.command("PING")
    await connections.trip("probes", {})
    (shared,) = connections._free
    begun, go_on = asyncio.Event(), asyncio.Event()
    run = Channel.run

    async def held(self: Channel, *what: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await run(self, *what)

    monkeypatch.setattr(Channel, "run", held)
    trip = asyncio.create_task(connections.trip("probes", {}))
    await begun.wait()
    closing = asyncio.create_task(queue.close())
    await until(lambda: connections._closed, "the close to begin")
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert shared._connection is None
    go_on.set()
    assert await trip == []
    assert connections._trips._connection is None


async def test_no_connection_is_made_after_the_end(queue: RedisQueue) -> None:
    """One who has enqueued still waits for the disk, for which there is another connection."""
    await queue.open()
    await queue.close()
    with pytest.raises(QueueError, match="not open"):
        await queue._synced.wait()
