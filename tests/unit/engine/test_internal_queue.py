"""The bounded queue between the dispatcher and the workers."""

import asyncio
import time
from itertools import pairwise

import pytest

from penstock import runtime
from penstock.engine.claims import MAX_SLACK, InternalQueue, StartSlack
from penstock.lanes.limits import grant
from penstock.model.lane import LaneConfig
from tests.support.lane_states import NOON, lane_state
from tests.support.leases import lease
from tests.support.waiting import PATIENCE


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(runtime, "monotonic", clock.monotonic)
    return clock


async def test_jobs_come_out_in_the_order_they_went_in() -> None:
    queue = InternalQueue(maxsize=10)
    for n in range(5):
        queue.put_nowait(lease(n))

    assert queue.qsize() == 5
    assert [await queue.get() for _ in range(5)] == [lease(n) for n in range(5)]
    assert queue.empty()


async def test_it_never_holds_more_than_its_size() -> None:
    queue = InternalQueue(maxsize=2)
    queue.put_nowait(lease(1))
    queue.put_nowait(lease(2))

    assert queue.full()
    with pytest.raises(asyncio.QueueFull):
        queue.put_nowait(lease(3))
    queue.get_nowait()
    queue.put_nowait(lease(3))


async def test_worker_that_waits_gets_the_next_job() -> None:
    queue = InternalQueue(maxsize=2)
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.put_nowait(lease(7))

    assert await asyncio.wait_for(waiting, PATIENCE) == lease(7)


async def test_age_is_that_of_the_first_in_line(clock: Clock) -> None:
    queue = InternalQueue(maxsize=10)
    assert queue.oldest_age() is None
    queue.put_nowait(lease(1))
    clock.now += 3
    queue.put_nowait(lease(2))
    clock.now += 1

    assert queue.oldest_age() == 4
    queue.get_nowait()
    assert queue.oldest_age() == 1


async def test_only_jobs_that_waited_long_are_taken_out(clock: Clock) -> None:
    queue = InternalQueue(maxsize=10)
    for n in range(4):
        queue.put_nowait(lease(n))
        clock.now += 1

    assert [each.seq for each in queue.take_older(3)] == [0, 1]
    assert queue.qsize() == 2
    assert [each.seq for each in queue.take_older(0)] == [2, 3]
    assert queue.take_older(0) == []
    assert queue.empty()


async def test_taking_jobs_out_makes_room_for_who_waits_to_put() -> None:
    queue = InternalQueue(maxsize=1)
    queue.put_nowait(lease(1))
    putting = asyncio.ensure_future(queue.put(lease(2)))
    await asyncio.sleep(0)
    assert len(queue.take_older(0)) == 1
    await asyncio.wait_for(putting, PATIENCE)

    assert queue.get_nowait() == lease(2)


async def test_cancelled_worker_takes_no_job_with_it() -> None:
    queue = InternalQueue(maxsize=5)
    first, second = (asyncio.ensure_future(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.put_nowait(lease(1))
    first.cancel()

    assert await asyncio.wait_for(second, PATIENCE) == lease(1)
    await asyncio.gather(first, return_exceptions=True)
    assert queue.empty()


async def test_jobs_that_just_came_are_young() -> None:
    queue = InternalQueue(maxsize=5)
    before = time.monotonic()
    queue.put_nowait(lease(1))
    age = queue.oldest_age()

    assert age is not None
    assert 0 <= age <= time.monotonic() - before


async def test_job_that_comes_back_is_served_first_and_takes_no_room() -> None:
    queue = InternalQueue(maxsize=1)
    queue.put_nowait(lease(1))
    first, second, third = (queue.come_back() for _ in range(3))
    queue.withdraw(second)

    assert (queue.qsize(), queue.coming_back) == (1, 2)
    assert queue.take_older(0) == [lease(1)]
    assert not queue.empty()
    queue.put_nowait(lease(2))
    assert [queue.get_nowait() for _ in range(3)] == [first, third, lease(2)]
    assert queue.empty()


async def test_worker_that_waits_is_woken_by_a_job_that_comes_back() -> None:
    queue = InternalQueue(maxsize=1)
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    place = queue.come_back()

    assert await asyncio.wait_for(waiting, PATIENCE) is place


@pytest.mark.parametrize("late", [0.0, 0.004, 0.03, 0.2, 0.8])
def test_a_process_that_is_always_late_starts_jobs_all_the_same(late: float) -> None:
    """Of a process that needs so long from a claim to the start, in a lane that allows 5 ms."""
    slack, now = StartSlack(), NOON
    lane = lane_state(LaneConfig(min_interval_seconds=0.1))
    begun: list[float] = []
    for _ in range(40):
        now = max(now, lane.next_start)
        (start,) = grant([lane], 1, now, slack=slack.seconds)
        void = start + slack.seconds + lane.tolerance
        lane.in_flight, now = 0, start + late
        if slack.in_time(start, void, now):
            begun.append(now)
    gaps = [after - before for before, after in pairwise(begun)]
    assert min(gaps) >= 0.1
    assert len(begun) >= 15
    assert slack.seconds <= MAX_SLACK


def test_one_start_that_is_missed_changes_nothing() -> None:
    slack = StartSlack()
    for now in (100.0, 200.0):
        assert not slack.in_time(now, now + 0.005, now + 60.0)
        assert slack.in_time(now, now + 0.005, now)
        assert slack.seconds == 0.0


def test_who_is_prompt_again_asks_for_no_more_time() -> None:
    slack = StartSlack()
    for _ in range(9):
        slack.in_time(100.0, 100.005, 160.0)
    assert slack.seconds == MAX_SLACK
    for _ in range(9):
        assert slack.in_time(100.0, 100.005, 100.0)
    assert slack.seconds == 0.0
