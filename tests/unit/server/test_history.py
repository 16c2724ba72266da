"""What a server remembers of the last hour."""

import asyncio
from typing import Any

import pytest

from penstock.errors import QueueUnavailable
from penstock.model.tally import RunOutcome, Tally
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import ProcessInfo
from penstock.server.history import KEPT, LANES, SAMPLE_SECONDS, SHARE, History

LONG_AGO = -1000.0


def process(
    name: str,
    heartbeat: float,
    completed: int,
    seconds: float = 0.1,
    joined: float = LONG_AGO,
) -> ProcessInfo:
    tally = Tally()
    for _ in range(completed):
        one = tally.of("add")
        one.endings[list(RunOutcome).index(RunOutcome.COMPLETED)] += 1
        one.run.note(seconds)
    status = {"busy": 1, "tally": tally.as_status()}
    return ProcessInfo(name, "host", 1, ["add"], 4, joined, heartbeat, heartbeat + 15, status)


def lane(name: str, in_flight: int, waiting: int = 0) -> LaneInfo:
    return LaneInfo(name, None, 0.1, 4, in_flight, waiting, "closed", None, None, None, None, 0)


def history() -> History:
    app: Any = None  # only `keep` asks it
    return History(app)


def test_speed_is_what_ended_between_two_renewals_of_each_process_together() -> None:
    kept = history()
    kept.note(10, [process("a", 8, 100), process("b", 9, 0)], [])
    kept.note(15, [process("a", 13, 150), process("b", 14, 25)], [])
    kept.note(20, [process("a", 13, 150), process("b", 19, 25)], [])  # a has not renewed since
    seen = kept.view().as_dict()
    assert seen["at"] == [10, 15, 20]
    assert seen["completed"] == [0, 10 + 5, 10]
    assert seen["busy"] == [2, 2, 2]
    assert seen["workers"] == [8, 8, 8]


def test_what_a_process_did_before_it_was_first_seen_is_not_of_now() -> None:
    kept = history()
    kept.note(10, [process("a", 8, 1_000_000)], [])
    assert kept.view().as_dict()["completed"] == [0]
    assert kept.view().as_dict()["run_p95"] == [None]


def test_all_that_a_process_did_which_joined_since_the_last_look_is_of_now() -> None:
    kept = history()
    kept.note(10, [process("a", 9, 4, joined=7)], [])  # as this server has just started, too
    kept.note(15, [process("b", 14, 3, joined=11), process("c", 14, 1000, joined=2)], [])
    assert kept.view().as_dict()["completed"] == [2, 1]
    assert kept.view().as_dict()["run_p95"][1] is not None


async def test_a_first_look_that_is_slow_leaves_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks take half a second each, on a clock of their own."""
    clock, waits = 0.0, list[float]()

    class Slow:
        async def processes(self) -> list[ProcessInfo]:
            nonlocal clock
            clock += 0.5
            raise QueueUnavailable("away")

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise asyncio.CancelledError

    app: Any = Slow()
    monkeypatch.setattr("penstock.server.history.time.monotonic", lambda: clock)
    monkeypatch.setattr("penstock.server.history.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await History(app).keep()
    assert waits == [SAMPLE_SECONDS, SHARE * 0.5]


def test_a_process_that_has_left_counts_no_more() -> None:
    kept = history()
    kept.note(10, [process("a", 8, 0)], [])
    kept.note(15, [process("a", 13, 50)], [])
    kept.note(20, [], [])
    assert kept.view().as_dict()["completed"] == [0, 10, 0]


def test_times_are_of_the_runs_that_ended_meanwhile() -> None:
    kept = history()
    kept.note(10, [process("a", 8, 10, seconds=50)], [])
    quick = process("a", 13, 10, seconds=50)
    tally = Tally.from_status(quick.status)
    for _ in range(10):
        tally.of("add").run.note(0.002)
    status = {**quick.status, "tally": tally.as_status()}
    kept.note(15, [ProcessInfo("a", "host", 1, ["add"], 4, LONG_AGO, 13, 28, status)], [])
    (_, newest) = kept.view().as_dict()["run_p95"]
    assert 0.001 <= newest <= 0.0025


def test_lanes_are_told_of_for_as_long_as_they_had_something_to_do() -> None:
    kept = history()
    kept.note(10, [], [lane("busy", 2, 7), lane("idle", 0)])
    kept.note(15, [], [lane("busy", 0), lane("idle", 0)])
    assert kept.view().as_dict()["lanes"] == [
        {"lane": "busy", "in_flight": [2, 0], "waiting": [7, 0]}
    ]
    assert kept.of_lane("idle", 4) == {
        "limit": [4, 4],
        "at": [10, 15],
        "in_flight": [0, 0],
        "waiting": [0, 0],
    }


def test_it_does_not_grow_without_end() -> None:
    kept = history()
    for at in range(KEPT + 5):
        kept.note(at, [], [lane(f"host:{n}", 1) for n in range(LANES + 10)])
    assert len(kept.view().as_dict()["at"]) == KEPT
    assert len(kept.view().as_dict()["lanes"]) == LANES
    assert len(kept.view(3).as_dict()["at"]) == 3
