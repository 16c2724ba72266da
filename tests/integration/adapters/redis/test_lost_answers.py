"""An answer that is lost on its way: the server has done what was asked, and nobody knows."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from penstock import Job, Penstock
from penstock.adapters.redis import RedisQueue, connections
from penstock.adapters.redis.member import RedisMember
from penstock.adapters.redis.scripts import script
from penstock.errors import QueueUnavailable
from penstock.model.ids import new_id
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import Busy, Permit, PermitRequest
from penstock.ports.queue import KindDefaults, Want
from tests.conformance.support import claim, completed, exchange, new_jobs, want
from tests.support.database_servers import redis_url
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(redis_url("redis")) as proxy:
        yield proxy


def url_of(proxy: Proxy) -> str:
    return f"{proxy.url}?namespace={new_id()}"


@pytest.fixture
async def queue(proxy: Proxy) -> AsyncIterator[RedisQueue]:
    def one_slot(name: str) -> LaneConfig:
        return LaneConfig(min_interval_seconds=0.0, max_parallel=1)

    queue = RedisQueue(url_of(proxy), lane_config=one_slot)
    await queue.open()
    yield queue
    await queue.close()


def lose_answer(proxy: Proxy, name: str) -> None:
    """Of the next run of this script."""
    proxy.lose = script(name).digest.encode()


async def test_jobs_claimed_with_an_answer_that_was_lost_come_back(
    queue: RedisQueue, proxy: Proxy
) -> None:
    member = await queue.join(["work"], 10, 60.0)
    await claim(member)  # the server knows the script now
    jobs = await queue.enqueue(new_jobs(3))
    lose_answer(proxy, "exchange")
    with pytest.raises(QueueUnavailable):
        await claim(member)
    assert proxy.lost == 1
    (counts,) = await queue.counts()
    assert counts.states == {"running": 3}, "claimed, but nobody knows"

    leases = await claim(member)

    assert [(lease.id, lease.attempts) for lease in leases] == [(job.id, 1) for job in jobs]
    assert await claim(member) == [], "once only"
    assert (await exchange(member, *map(completed, leases))).stale == []
    await member.leave()


async def test_two_answers_lost_in_a_row_lose_nothing(queue: RedisQueue, proxy: Proxy) -> None:
    member = await queue.join(["work"], 10, 60.0)
    await claim(member)
    await queue.enqueue(new_jobs(4))
    for _ in range(2):
        lose_answer(proxy, "exchange")
        with pytest.raises(QueueUnavailable):
            await claim(member, 2)

    assert len(await claim(member, 10)) == 4
    await member.leave()


async def test_settlement_whose_answer_was_lost_is_made_again_without_harm(
    queue: RedisQueue, proxy: Proxy
) -> None:
    member = await queue.join(["work"], 10, 60.0)
    await queue.enqueue(new_jobs(2, log="paper"))
    settled = [completed(lease, '"once"') for lease in await claim(member)]
    lose_answer(proxy, "exchange")
    with pytest.raises(QueueUnavailable):
        await exchange(member, *settled)

    assert (await exchange(member, *settled, wanted=want())).stale == []
    whats = [change.what for change in await queue.changes("default", "paper", 0, 10)]
    assert whats == ["queued", "queued", "completed", "completed"]
    await member.leave()


async def test_enqueue_whose_answer_was_lost_can_be_made_again(
    queue: RedisQueue, proxy: Proxy
) -> None:
    await queue.enqueue(new_jobs(1))
    batch = new_jobs(5)
    lose_answer(proxy, "enqueue")
    with pytest.raises(QueueUnavailable):
        await queue.enqueue(batch)

    again = await queue.enqueue(batch)

    assert [job.id for job in again] == [item.id for item in batch.items]
    (counts,) = await queue.counts()
    assert counts.states == {"queued": 6}


async def test_slot_of_a_lane_claimed_with_a_lost_answer_is_free_again(
    queue: RedisQueue, proxy: Proxy
) -> None:
    member = await queue.join(["work"], 10, 60.0)
    in_lanes = Want(0, {"work": KindDefaults(30.0, 3)}, True, lanes=5)
    await member.exchange([], [], in_lanes)
    await queue.enqueue(new_jobs(2, lane="api"))
    lose_answer(proxy, "exchange")
    with pytest.raises(QueueUnavailable):
        await member.exchange([], [], in_lanes)

    (lease,) = (await member.exchange([], [], in_lanes)).leases
    assert lease.attempts == 1
    (lane,) = await queue.lanes()
    assert (lane.in_flight, lane.waiting) == (1, 1)
    await member.leave()


async def test_permit_granted_with_a_lost_answer_is_free_again(
    queue: RedisQueue, proxy: Proxy
) -> None:
    member = await queue.join(["work"], 10, 60.0)
    (first,) = await member.permits([PermitRequest("api", -1, False, 0.0)])
    assert isinstance(first, Permit)
    (second,) = await member.permits([PermitRequest("api", -2, False, 0.0)])
    assert isinstance(second, Busy)
    lose_answer(proxy, "permits")
    with pytest.raises(QueueUnavailable):
        await member.permits([PermitRequest("other", -3, False, 0.0)])

    (again,) = await member.permits([PermitRequest("other", -4, False, 0.0)])

    assert isinstance(again, Permit)
    await member.leave()


async def test_trip_that_arrives_late_is_not_made(queue: RedisQueue) -> None:
    """As of a server that was frozen: it finds what was asked of it long ago, and others since."""
    member = await queue.join(["work"], 10, 60.0)
    assert isinstance(member, RedisMember)
    await claim(member)
    await member.permits([PermitRequest("api", -1, True, 0.0)])
    await queue.enqueue(new_jobs(2))
    member._trips, member._asks = 0, 0

    assert await claim(member) == []
    with pytest.raises(ValueError, match="zip"):  # nobody is there to read that answer
        await member.permits([PermitRequest("api", -2, False, 0.0)])
    (counts,) = await queue.counts()
    assert counts.states == {"queued": 2}
    (lane,) = await queue.lanes()
    assert lane.in_flight == 0
    await member.leave()


async def test_connection_that_dies_without_a_sign_is_noticed(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 8.0)  # of what is under way by then
    app = Penstock(url_of(proxy), max_workers=2, reconnect_cap_seconds=0.2)

    @app.job("noop")
    async def noop(ctx: object) -> None: ...

    async with app.running() as orchestrator:
        proxy.silence()
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(connections, "ANSWER_SECONDS", 0.3)
            with pytest.raises(QueueUnavailable, match="did not answer in time"):
                await asyncio.wait_for(app.enqueue("noop"), PATIENCE)
        proxy.resume()
        job: Job = await app.enqueue("noop")
        assert (await app.wait(job.id, timeout=60)).state == "completed"
        await until(lambda: orchestrator.degraded is None, "the worker to recover")


async def test_cancelling_a_call_is_never_swallowed(proxy: Proxy) -> None:
    """At whatever point: a task that outlives its cancellation would hang a stop for ever."""
    for ticks in range(100):
        queue = RedisQueue(url_of(proxy))
        await queue.open()
        await queue.connections.close()  # so that it has to connect
        queue.connections.open()
        call = asyncio.ensure_future(queue.counts())
        for _ in range(ticks):
            await asyncio.sleep(0)
        done, cancelled = call.done(), call.cancel()
        await asyncio.wait([call], timeout=60)
        await queue.close()
        if done:
            return
        assert cancelled
        assert call.cancelled(), ticks
