"""With `wait_aof` an enqueue is acknowledged once the server's append-only file has the job."""

import asyncio
from collections.abc import Iterator

import pytest
import redis

from penstock import Penstock
from penstock.adapters.redis import durability
from penstock.adapters.redis.connections import Connections
from penstock.errors import QueueError, QueueUnusable
from tests.support.database_servers import RedisServer
from tests.support.waiting import PATIENCE


@pytest.fixture
def valkey() -> Iterator[RedisServer]:
    """A server of its own, whose disk is synced every second."""
    server = RedisServer("valkey").start()
    try:
        yield server
    finally:
        server.remove()


def waits(server: RedisServer) -> int:
    """How often the server was asked to wait for its disk."""
    with redis.Redis.from_url(server.url) as asked:
        return int(asked.info("commandstats").get("cmdstat_waitaof", {}).get("calls", 0))


async def test_enqueues_wait_for_the_disk_and_do_so_together(
    valkey: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "SYNC_SECONDS", PATIENCE / 2)  # however slow the disk is
    async with Penstock(valkey.url) as app:
        await app.enqueue("noop")
        assert waits(valkey) == 0
    async with Penstock(valkey.url, wait_aof=True) as app:
        jobs = await asyncio.gather(*(app.enqueue("noop") for _ in range(50)))
        assert 1 <= waits(valkey) <= 25, "together, though a busy machine may part them"
        valkey.kill()
        valkey.start()
        for job in jobs:
            assert (await app.get(job.id)).id == job.id


async def test_what_the_disk_does_not_have_is_not_acknowledged(
    valkey: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Penstock(valkey.url, wait_aof=True) as app:
        with redis.Redis.from_url(valkey.url) as server:
            server.config_set("appendonly", "no")
        with pytest.raises(QueueError, match="appendonly"):
            await app.enqueue("noop")

        # As if the disk were too slow.
        async def late(words: list[str | int]) -> list[int]:
            return [0, 0]

        monkeypatch.setattr(app.queue._synced._channel, "send", late)  # type: ignore[attr-defined]
        with pytest.raises(QueueError, match="has not written to its disk within 4 s"):
            await app.enqueue("noop")


async def test_server_that_cannot_wait_is_refused_and_what_to_do_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = "redis_version:7.0.15\r\nloading:0\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n"

    async def command(self: Connections, *words: str | int) -> str:
        return told

    monkeypatch.setattr(Connections, "command", command)
    app = Penstock("redis://127.0.0.1:1/0", wait_aof=True)
    with pytest.raises(QueueUnusable, match=r"7\.0\.15, which has no WAITAOF; .* always"):
        await app.queue.open()
    connections = app.queue.connections  # type: ignore[attr-defined]
    await durability.check_server(connections, allow_volatile=False, wait_aof=False)
    told = told.replace("7.0.15", "7.2.4").replace("aof_enabled:1", "aof_enabled:0")
    with pytest.raises(QueueUnusable, match="appendonly yes"):
        await durability.check_server(connections, allow_volatile=True, wait_aof=True)
