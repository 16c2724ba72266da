"""Jobs and questions share the slots of a lane: neither keeps the other out."""

import random

import pytest

from penstock.lanes import permit, waiting
from penstock.lanes.limits import grant, next_chance
from penstock.lanes.permit import RESERVED_SECONDS
from penstock.lanes.state import LaneState
from penstock.lanes.view import why_waiting
from penstock.ports.lanes import Busy, Permit, PermitRequest

NOON = 1_800_000_000.0
PATIENCE = 5.0
HOLDER = 1


def lane_of(slots: int, **values: float) -> LaneState:
    lane = LaneState("embedder", None, 0.0, 60.0, slots)
    for name, value in values.items():
        setattr(lane, name, value)
    return lane


def ask(lane: LaneState, now: float = NOON, *, question: bool = True) -> Permit | Busy:
    request = PermitRequest(lane.name, -1, False, PATIENCE, -1, question=question)
    return permit.ask([lane], request, HOLDER, (), now)


def start_jobs(lane: LaneState, wanted: int = 10, now: float = NOON) -> int:
    return len(grant([lane], min(wanted, waiting.room([lane], wanted, now)), now))


def test_jobs_have_all_slots_where_nobody_asks() -> None:
    assert start_jobs(lane_of(4)) == 4


@pytest.mark.parametrize("slots", [2, 4])
def test_jobs_leave_one_of_several_slots_to_questions(slots: int) -> None:
    lane = lane_of(slots)
    assert isinstance(ask(lane), Permit)
    lane.in_flight = lane.asking = 0
    assert start_jobs(lane, now=NOON + RESERVED_SECONDS - 1) == slots - 1
    assert isinstance(ask(lane, NOON + RESERVED_SECONDS - 1), Permit)
    assert lane.in_flight == slots


def test_jobs_have_all_slots_again_when_nobody_has_asked_for_a_while() -> None:
    lane = lane_of(2)
    ask(lane)
    lane.in_flight = lane.asking = 0
    assert start_jobs(lane, now=NOON + RESERVED_SECONDS) == 2


@pytest.mark.parametrize("slots", [2, 4])
def test_questions_leave_one_of_several_slots_to_jobs(slots: int) -> None:
    lane = lane_of(slots)
    granted = [isinstance(ask(lane), Permit) for _ in range(2 * slots)]
    assert granted == [True] * (slots - 1) + [False] * (slots + 1)
    assert start_jobs(lane) == 1


def test_the_only_slot_goes_to_the_question_that_waits_and_then_to_a_job() -> None:
    lane = lane_of(1)
    assert start_jobs(lane) == 1
    assert ask(lane) == Busy("embedder", None, "all its slots are taken")
    lane.in_flight = 0
    assert start_jobs(lane) == 0
    assert isinstance(ask(lane), Permit)
    assert isinstance(ask(lane), Busy)  # another, which waits from now on, too
    lane.in_flight = lane.asking = 0
    assert start_jobs(lane) == 0
    assert isinstance(ask(lane), Permit)
    lane.in_flight = lane.asking = 0
    assert start_jobs(lane) == 1


def test_a_question_that_went_away_keeps_jobs_out_no_longer_than_until_it_had_asked_again() -> None:
    lane = lane_of(1, in_flight=1)
    ask(lane)
    lane.in_flight = 0
    over = NOON + permit.WAITING_SECONDS
    assert next_chance([lane], NOON) == over
    assert waiting.look_again([lane], NOON) == (over, "embedder")
    assert start_jobs(lane, now=over) == 1


def test_permits_of_jobs_leave_the_slot_to_questions_as_jobs_do() -> None:
    lane = lane_of(2, asked_until=NOON + 1)
    assert isinstance(ask(lane, question=False), Permit)
    assert isinstance(ask(lane, question=False), Busy)
    assert isinstance(ask(lane), Permit)


def test_question_that_is_the_try_of_an_open_breaker_says_so() -> None:
    lane = lane_of(4, step=1, retry_at=NOON + 1)
    assert isinstance(ask(lane), Busy)
    tried = ask(lane, NOON + 1)
    assert isinstance(tried, Permit)
    assert tried.trial
    assert ask(lane, NOON + 1) == Busy("embedder", None, "its breaker is open", give_up=True)


def test_job_is_told_that_a_slot_is_kept_for_questions() -> None:
    lane = lane_of(2, in_flight=1, asked_until=NOON + 1)
    assert "kept for questions" in why_waiting("embedder", [lane], 0, NOON)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_comes_when_no_limit_is_exceeded_and_nobody_starves(seed: int) -> None:
    chance = random.Random(seed)
    slots = chance.choice([1, 2, 3, 5])
    lane, now = lane_of(slots), NOON
    served = {"job": 0, "question": 0}
    for _ in range(500):  # both always want more than there is
        now += chance.random() * 0.1
        if lane.asking and chance.random() < 0.5:
            lane.asking, lane.in_flight = lane.asking - 1, lane.in_flight - 1
        elif lane.in_flight > lane.asking:
            lane.in_flight -= 1
        for who in chance.sample(["job", "question"], 2):
            if who == "job":
                served["job"] += start_jobs(lane, now=now)
            else:
                served["question"] += isinstance(ask(lane, now), Permit)
        assert 0 <= lane.asking <= lane.in_flight <= slots
    assert min(served.values()) > 50
