"""What a process asks for next, by what the last trip has told it."""

import asyncio

import pytest

from penstock.engine.claims import Claims
from penstock.engine.events import EngineEvents
from penstock.engine.handlers import Handlers
from penstock.engine.room import Room
from penstock.engine.running import Running
from penstock.engine.settler import Settler
from penstock.model.settings import EngineConfig
from penstock.ports.queue import Exchange, Want

WORKERS = 3


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def room(clock: Clock) -> Room:
    """That of an idle process, which has found nothing to claim."""
    settings, events = EngineConfig(max_workers=WORKERS), EngineEvents()
    claims = Claims(10, Settler(settings, events), events, clock)
    claims.likely = claims.likely_in_lanes = False
    await asyncio.sleep(0)
    return Room(settings, Handlers({}), claims, Running(events), clock)


async def test_job_is_claimed_once_it_is_due_although_a_trip_for_lanes_came_first(
    room: Room, clock: Clock
) -> None:
    """That trip lets the job join the line, and takes nothing that needs no lane."""
    room.due_at(101.0)
    assert room.want().limit == 0
    for_lanes = Want(0, {}, True, lanes=WORKERS)
    room.asking(for_lanes)
    clock.now = 101.5

    room.learn(for_lanes, Exchange([], [], None, True))

    assert room.want().limit == WORKERS


async def test_what_is_due_is_asked_for_once(room: Room, clock: Clock) -> None:
    room.due_at(101.0)
    clock.now = 101.5
    for_all = room.want()
    assert (for_all.limit, for_all.lanes) == (WORKERS, WORKERS)
    room.asking(for_all)

    room.learn(for_all, Exchange([], [], None, True))

    assert not room.want().looks
