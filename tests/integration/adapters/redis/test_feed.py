"""The feed in Redis: a stream that stays small, and goes when nothing comes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import redis

from penstock.adapters.redis import RedisQueue
from penstock.adapters.redis.address import parse
from penstock.model.ids import new_id
from penstock.ports.queue import FEED_SECONDS
from tests.conformance.support import add
from tests.support.database_servers import redis_url

ALL = 10_000
NODE = 100
"""Entries that the server keeps, and forgets, together."""


@pytest.fixture(params=["redis", "valkey"])
def url(request: pytest.FixtureRequest) -> str:
    return f"{redis_url(request.param)}?namespace={new_id()}"


@pytest.fixture
async def queue(url: str) -> AsyncIterator[RedisQueue]:
    queue = RedisQueue(url)
    await queue.open()
    yield queue
    await queue.close()


@pytest.fixture
def server(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url.partition("?")[0], decode_responses=True) as server:
        yield server


async def test_what_is_older_than_an_hour_is_trimmed_as_the_feed_grows(
    url: str, queue: RedisQueue, server: Any
) -> None:
    key = f"{parse(url).tag}:feed:default"
    old = int((queue.now() - FEED_SECONDS - 60) * 1000)
    young = int((queue.now() - FEED_SECONDS + 60) * 1000)
    entry = json.dumps([1.0, "queued", "j", {}])
    for start in (old, young):
        for n in range(5 * NODE):
            fields = {"log": "past", "version": n + 1, "entry": entry}
            server.xadd(key, fields, id=f"{start}-{n + 1}")
    (job,) = await add(queue, 1, log="paper")

    left = await queue.feed("default", None, ALL)
    times = [int(fed.position[1:].split("-")[0]) for fed in left]
    assert times.count(young) == 5 * NODE
    assert times.count(old) < NODE
    assert left[-1].change.job_id == job.id


async def test_feed_of_an_idle_tenant_goes_an_hour_after_its_last_entry(
    url: str, queue: RedisQueue, server: Any
) -> None:
    key = f"{parse(url).tag}:feed:default"
    await add(queue, 3, log="paper")
    assert FEED_SECONDS - 60 < server.ttl(key) <= FEED_SECONDS
    server.expire(key, 5)
    await add(queue, 1, log="paper")
    assert server.ttl(key) > FEED_SECONDS - 60

    last = (await queue.feed("default", None, ALL))[-1].position
    server.delete(key)
    assert await queue.feed("default", last, ALL) == []
    await asyncio.sleep(0.005)  # positions begin anew in another millisecond, as after an hour
    (job,) = await add(queue, 1, log="paper")
    assert [fed.change.job_id for fed in await queue.feed("default", last, ALL)] == [job.id]
