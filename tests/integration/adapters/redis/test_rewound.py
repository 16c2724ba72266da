"""A server that has lost its last moments takes jobs to be held whose outcome it had stored."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from penstock.adapters.redis import RedisQueue
from penstock.model.ids import new_id, new_ref
from penstock.model.job import JobState
from penstock.ports.lanes import Permit, PermitRequest, Returned
from tests.conformance.support import claim, completed, exchange, new_jobs, no_limits
from tests.support.database_servers import redis_url


class Past:
    """What a namespace holds now, to be gone back to."""

    def __init__(self, server: Any, namespace: str) -> None:
        self._server = server
        self._pattern = f"{{{namespace}}}:*"
        self._keys = {key: server.dump(key) for key in server.scan_iter(self._pattern)}

    def comes_back(self) -> None:
        for key in list(self._server.scan_iter(self._pattern)):
            self._server.delete(key)
        for key, value in self._keys.items():
            self._server.restore(key, 0, value)


@pytest.fixture(params=["redis", "valkey"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[RedisQueue, Any, str]]:
    url, namespace = redis_url(request.param), new_id()
    queue = RedisQueue(f"{url}?namespace={namespace}", lane_config=no_limits)
    await queue.open()
    with redis.Redis.from_url(url) as server:
        yield queue, server, namespace
    await queue.close()


async def test_what_had_ended_in_the_lost_past_goes_back_to_the_line(
    place: tuple[RedisQueue, Any, str],
) -> None:
    queue, server, namespace = place
    member = await queue.join(["work"], 10, 60.0)
    await queue.enqueue(new_jobs(2))
    ended, running = await claim(member, 2)
    _, given_back = await member.permits([_ask(), _ask()])
    assert isinstance(given_back, Permit)
    past = Past(server, namespace)
    await exchange(member, completed(ended))
    await member.exchange([], [], None, [Returned(given_back, None, 0, 0)])
    past.comes_back()

    assert (await exchange(member)).member
    await exchange(member)

    states = {job.id: job.state for job in (await queue.get([ended.id, running.id])).values()}
    assert states == {ended.id: JobState.QUEUED, running.id: JobState.RUNNING}
    (lane,) = await queue.lanes()
    assert lane.in_flight == 1, "the permit that is still held"
    (again,) = await claim(member, 2)
    assert again.id == ended.id
    assert (await exchange(member, completed(again), completed(running))).stale == []
    await member.leave()


def _ask() -> PermitRequest:
    return PermitRequest("api", new_ref(), False, 1.0)
