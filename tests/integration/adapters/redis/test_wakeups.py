"""Wake-ups over Redis: through silence, and when a connection dies without a sign."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest

from penstock.adapters.redis import RedisQueue, wakeups
from penstock.ports.queue import Topic
from tests.conformance.support import add_one, until
from tests.support.database_servers import redis_url
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import PATIENCE, look_on


@pytest.fixture
def url() -> str:
    return f"{redis_url('valkey')}?namespace={uuid4().hex}"


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is looked into at once."""
    monkeypatch.setattr(wakeups, "QUIET_SECONDS", 0.05)


def hearing() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "penstock-wakeups"]


async def test_wake_ups_come_after_a_long_silence(url: str) -> None:
    quiet, busy = RedisQueue(url), RedisQueue(url)
    await quiet.open()
    await busy.open()
    listener = quiet.listen(Topic.READY)
    await look_on(20 * wakeups.QUIET_SECONDS)
    assert len(hearing()) == 2
    await add_one(busy)

    assert await listener.wait(PATIENCE)
    await busy.close()
    await quiet.close()
    assert hearing() == []


@pytest.mark.parametrize("cut", [Proxy.swallow, Proxy.half_close, Proxy.drop])
async def test_connection_that_dies_is_made_anew_and_every_listener_woken(
    url: str, cut: Callable[[Proxy], None]
) -> None:
    with Proxy(url) as proxy:
        queue = RedisQueue(proxy.url)
        await queue.open()
        listener = queue.listen(Topic.FINISHED)
        made = proxy.accepted
        cut(proxy)

        assert await listener.wait(PATIENCE), "something may have happened meanwhile"

        async def again() -> bool:
            return proxy.accepted > made

        await until(again, "a new connection")
        await queue.close()
