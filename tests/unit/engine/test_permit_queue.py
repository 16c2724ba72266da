"""Who of those that wait for permits in a lane is asked for, and when."""

import pytest

from penstock.engine.permit_queue import (
    FIRST_WIDTH,
    FULL_SECONDS,
    PermitHolder,
    PermitQueue,
    Turn,
)
from penstock.engine.requests import MOMENT
from penstock.lanes.limits import AHEAD_SECONDS
from penstock.ports.lanes import RATE, Busy

POLL = 1.0


def asker(number: int) -> PermitHolder:
    one = PermitHolder()
    one.number = number
    return one


def line_of(*numbers: int) -> PermitQueue:
    line = PermitQueue("api", slot_only=False)
    for number in numbers:
        line.add(Turn(asker(number)))
    return line


def by_rate(until: float) -> Busy:
    return Busy("api", until, RATE)


def numbers(turns: list[Turn]) -> list[int]:
    return [turn.asker.number for turn in turns]


async def test_askers_take_turns_each_with_its_oldest_request() -> None:
    line = line_of(1, 1, 1, 2, 3, 3)
    assert numbers(line.take(0.0)) == [1, 2, 3, 1, 3, 1]
    assert len(line) == 0


async def test_who_is_refused_keeps_its_place() -> None:
    line = line_of(1, 2, 3)
    first, *others = line.take(0.0)
    for turn in reversed(others):
        line.add(turn, first=True)
    line.add(first)
    assert numbers(line.take(0.0)) == [2, 3, 1]


async def test_few_are_asked_for_where_few_are_granted() -> None:
    line = line_of(*range(1, 101))
    assert len(line.take(0.0)) == FIRST_WIDTH
    line.learn(3, [by_rate(1.0)], 0.0, POLL, 0.0)
    assert len(line.take(1.0)) == 4
    line.learn(4, [], 1.0, POLL, 0.0)
    assert len(line.take(1.0)) == 8, "more where all were granted"


async def test_rate_is_asked_for_shortly_before_its_time_or_as_early_as_answers_take() -> None:
    line = line_of(1, 2)
    line.take(0.0)
    line.learn(1, [by_rate(0.5)], 0.0, POLL, lag=0.0)
    assert line.look_at == pytest.approx(0.5 - AHEAD_SECONDS / 2), "jobs in line come first"
    line.learn(1, [by_rate(0.9)], 0.5, POLL, lag=0.1)
    assert line.look_at == pytest.approx(0.9 - AHEAD_SECONDS / 2 - 0.1)


async def test_who_was_overtaken_comes_before_the_next_job() -> None:
    line = line_of(1, 2)
    line.learn(1, [by_rate(0.5)], 0.0, POLL, lag=0.0)
    line.learn(0, [by_rate(0.9)], 0.5, POLL, lag=0.0)
    assert line.look_at == pytest.approx(0.9 - 2 * AHEAD_SECONDS)
    assert line.ahead(0.0) == 2 * AHEAD_SECONDS
    line.learn(1, [by_rate(1.3)], 0.8, POLL, lag=0.0)
    assert line.ahead(0.0) == AHEAD_SECONDS, "and then it is the turn of jobs again"


async def test_full_lane_is_looked_at_when_something_changes_and_now_and_then() -> None:
    line = line_of(1)
    line.take(0.0)
    line.learn(0, [Busy("all", None, "all its slots are taken")], 0.0, POLL, 0.0)
    assert (line.full, line.look_at) == ("all", FULL_SECONDS)
    line.look(MOMENT)
    assert line.look_at == MOMENT


async def test_nothing_but_time_brings_the_rate() -> None:
    line = line_of(1)
    line.take(0.0)
    line.learn(0, [by_rate(0.5)], 0.0, POLL, 0.0)
    before = line.look_at
    line.look(MOMENT)
    assert (line.look_at, line.full) == (before, "")


async def test_blocked_lane_is_looked_at_again_long_before_its_block_ends() -> None:
    """Somebody may lift it, and the news be lost."""
    line = line_of(1)
    line.learn(0, [Busy("api", 1e12, "paused")], 0.0, POLL, 0.0)
    assert line.look_at == POLL


async def test_freed_slots_are_for_requests_and_for_jobs_in_turn() -> None:
    line = line_of(1)
    assert [line.next_turn() for _ in range(4)] == [True, False, True, False]
    again = PermitQueue("api", slot_only=True)
    assert [again.next_turn() for _ in range(3)] == [True] * 3, "who has begun goes first"
