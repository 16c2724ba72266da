"""Outcomes on their way: no word of a run is lost, and none comes after its end."""

from typing import Any

import pytest

from penstock.engine.events import EngineEvents
from penstock.engine.run import Interrupt
from penstock.engine.settler import Settler
from penstock.model.job_log import LOG_LIMIT, log_line, parse_log
from penstock.model.settings import EngineConfig
from penstock.ports.queue import Lease, Outcome, Settlement

LEASE = Lease(
    *(1, "abc", "work", "default", "{}", 50, "", None, None, None, 0.0, 0.0, None, None, None),
    *(1, 0, 0, 1, "[]"),
)


class Running:
    """As much of a run as the settler asks for."""

    def __init__(self) -> None:
        self.lease = LEASE
        self.ended: Settlement | None = None
        self.interrupted: Interrupt | None = None


@pytest.fixture
def settler() -> Settler:
    """One that has just sent progress, and does so again in an hour."""
    settler = Settler(EngineConfig(progress_seconds=3600), EngineEvents())
    first: Any = Running()
    settler.note(first, 0.1, "begun")
    assert len(settler.take().progress) == 1
    return settler


def test_last_word_goes_with_the_settlement(settler: Settler) -> None:
    run: Any = Running()
    settler.note(run, 1.0, "all done", "bye\n")
    assert settler.take().progress == []
    settler.add(Settlement(LEASE, Outcome.COMPLETED), run)
    [note] = settler.take().progress
    assert (note.fraction, note.message, note.lines) == (1.0, "all done", "bye\n")
    assert settler.take().progress == []


def test_lines_gather_and_say_nothing_of_progress(settler: Settler) -> None:
    run: Any = Running()
    settler.note(run, 0.5, "half", "")
    settler.note(run, None, "", "one\n")
    settler.note(run, None, "", "two\n")
    settler.add(Settlement(LEASE, Outcome.COMPLETED), run)
    [note] = settler.take().progress
    assert (note.fraction, note.message, note.lines) == (0.5, "half", "one\ntwo\n")


def test_what_a_failed_trip_carried_goes_with_the_next(settler: Settler) -> None:
    run: Any = Running()
    settler.note(run, 0.5, "half", "one\n")
    settler.add(Settlement(LEASE, Outcome.COMPLETED), run)
    lost = settler.take()
    settler.put_back(lost)
    assert settler.take().progress == lost.progress


def test_nothing_is_noted_of_a_run_that_is_settled_or_lost(settler: Settler) -> None:
    ended: Any = Running()
    ended.ended = Settlement(LEASE, Outcome.COMPLETED)
    lost: Any = Running()
    lost.interrupted = Interrupt.LEASE_LOST
    for run in (ended, lost):
        settler.note(run, None, "", "late\n")
    settler.add(Settlement(LEASE, Outcome.COMPLETED), None)
    assert settler.take().progress == []


def test_a_handler_that_logs_without_end_takes_no_more_memory_than_is_kept(
    settler: Settler,
) -> None:
    run: Any = Running()
    for n in range(2000):
        settler.note(run, None, "", log_line(n, 1, "info", "x" * 100))
    settler.add(Settlement(LEASE, Outcome.COMPLETED), run)
    [note] = settler.take().progress
    assert len(note.lines) == LOG_LIMIT
    assert parse_log(note.lines)[-1]["at"] == 1999
