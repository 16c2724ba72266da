"""The server gone for a while: what the workers spend on it, and how soon they are back."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import JobState, Penstock
from tests.support.cpu_time import cpu_share
from tests.support.database_servers import PostgresServer, PrivateServer, RedisServer
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SERVERS: dict[str, Callable[[], PrivateServer]] = {
    "postgres": PostgresServer,
    "redis": lambda: RedisServer("redis"),
    "valkey": lambda: RedisServer("valkey"),
}
RESUMED = 2.0 * 15
"""Seconds from the server's return to the first job done; the target is 2."""
CPU = 0.01 * 5
"""Of one core, while it is gone; the target is 1 %."""


async def gone(queue: str, folder: Path, seconds: float, how: str) -> None:
    server = SERVERS[queue]().start()
    try:
        with Proxy(server.url) as proxy:
            farm = Farm(folder, url=proxy.url)
            farm.settings = {}  # as users have them: how often it looks decides what it costs
            worker = await farm.start("work")
            app = Penstock(server.url, **farm.settings)
            async with app:
                before = await app.enqueue("work", {"n": 1})
                assert (await app.wait(before.id, timeout=60)).state is JobState.COMPLETED
                proxy.leave() if how == "refused" else proxy.silence()
                await until(lambda: "unreachable" in worker.log, "degraded", patience=60)
                share = await cpu_share(seconds, worker.pid)
                job = await app.enqueue("work", {"n": 2})
                proxy.come_back() if how == "refused" else proxy.resume()
                back = time.monotonic()
                done = await app.wait(job.id, timeout=60)
                resumed = time.monotonic() - back
            await farm.close()
    finally:
        server.remove()
    print(f"{queue}, {how} for {seconds:g} s: {share:.2%} CPU, back after {resumed:.2f} s")
    assert done.state is JobState.COMPLETED
    assert share <= CPU
    assert resumed <= RESUMED


@pytest.mark.parametrize("how", ["refused", "silent"])
@pytest.mark.parametrize("queue", ["postgres", "redis"])
async def test_server_gone_for_seconds(tmp_path: Path, queue: str, how: str) -> None:
    await gone(queue, tmp_path, 2.0, how)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["refused", "silent"])
@pytest.mark.parametrize("queue", sorted(SERVERS))
async def test_server_gone_for_a_minute(tmp_path: Path, queue: str, how: str) -> None:
    await gone(queue, tmp_path, 60.0, how)
