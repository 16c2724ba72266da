"""Runs are counted by kind and outcome, and what is counted survives its way through a status."""

import json
from types import SimpleNamespace
from typing import cast

import pytest

from penstock.adapters.life_file import print_of
from penstock.adapters.sql.takeover import take_back
from penstock.engine.run import Run
from penstock.engine.run_counts import ENDING_OF, count_runs
from penstock.model.tally import (
    BOUNDS,
    MAX_KINDS,
    OTHER,
    DurationHistogram,
    KindTally,
    RunOutcome,
    Tally,
)
from penstock.ports.queue import Exchange, Outcome, Settlement
from tests.support.leases import lease

LEASE = lease(kind="a", enqueued_at=9.0, run_at=10.0)


def spread(**at: int) -> DurationHistogram:
    """`spread(b3=2)`: two in the fourth bound."""
    made = DurationHistogram()
    for place, count in at.items():
        made.counts[int(place[1:])] = count
    return made


def tally(
    kind: str, completed: int = 0, failed: int = 0, run: DurationHistogram | None = None
) -> Tally:
    one = KindTally(run=run or DurationHistogram())
    one.endings[0], one.endings[2] = completed, failed
    return Tally({kind: one})


def test_every_outcome_of_a_run_is_counted_as_something() -> None:
    assert set(ENDING_OF) == set(Outcome)


def test_jobs_that_were_never_started_here_are_no_runs() -> None:
    counted = Tally()
    handed_back = Settlement(LEASE, Outcome.HANDED_BACK)
    count_runs(counted, [(handed_back, None)], Exchange([], [], None, True))
    assert counted == Tally()


def test_outcome_that_the_queue_refused_is_counted_as_refused_and_not_timed() -> None:
    counted, run = Tally(), cast(Run, SimpleNamespace(started_at=12.0))
    late = Settlement(LEASE, Outcome.COMPLETED, 12.0, 13.0)
    count_runs(counted, [(late, run)], Exchange([], [late], None, True))
    assert counted.count() == counted.count("refused", "a") == 1
    assert counted.quantile("run", 0.5) is None
    spared = Exchange([], [], None, True, frozenset({LEASE.ref}))
    count_runs(counted, [(late, run)], spared)
    assert counted.count("handed_back") == 1
    count_runs(counted, [(late, run)], Exchange([], [], None, True))
    assert counted.count("completed") == 1
    assert counted.kinds["a"].wait.seconds == 2.0
    assert counted.kinds["a"].run.seconds == 1.0


def test_run_after_one_that_was_lost_is_counted_as_taken_back() -> None:
    held = (1, "1", "a", "default", None, "running", 1, 1, 3, 0, 5.0)
    back = take_back(held, "process", {1: (1, print_of("1"))}, "its process died", 9.0)
    again = LEASE._replace(crashes=1, history=json.dumps([back.record]))
    later = again._replace(history=json.dumps([back.record, {"outcome": "retry"}]))
    counted, run = Tally(), cast(Run, SimpleNamespace(started_at=12.0))
    ended = [(Settlement(one, Outcome.COMPLETED, 12.0, 13.0), run) for one in (again, later)]
    count_runs(counted, ended, Exchange([], [], None, True))
    assert counted.count("completed") == 2
    assert counted.kinds["a"].taken_back == 1
    assert Tally.from_status({"tally": counted.as_status()}) == counted


def test_tallies_are_added_kind_by_kind() -> None:
    both = tally("a", completed=3) + tally("a", failed=1) + tally("b", completed=5)
    assert both.count() == 9
    assert both.count("completed") == 8
    assert both.count("completed", "a") == 3
    assert both.count(kind="a") == 4
    assert both.count(kind="nobody knows it") == 0
    with pytest.raises(ValueError, match="vanished"):
        both.count("vanished")


def test_difference_of_two_readings_is_never_negative() -> None:
    before, after = tally("a", completed=3), tally("a", completed=10) + tally("b", failed=1)
    assert (after - before).count() == 8
    assert (before - after).count() == 0


def test_quantiles_lie_inside_their_bounds() -> None:
    counted = tally("a", run=spread(b0=50, b9=50))
    assert counted.quantile("run", 0.25) == pytest.approx(BOUNDS[0] / 2)
    assert counted.quantile("run", 0.5) == pytest.approx(BOUNDS[0])
    assert counted.quantile("run", 0.75) == pytest.approx((BOUNDS[8] + BOUNDS[9]) / 2)
    assert counted.quantile("run", 1) == BOUNDS[9]
    assert counted.quantile("wait", 0.5) is None
    assert counted.quantile("run", 0.5, kind="b") is None


def test_quantile_above_every_bound_is_the_highest() -> None:
    last = f"b{len(BOUNDS)}"
    assert tally("a", run=spread(**{last: 1})).quantile("run", 0.5) == BOUNDS[-1]


def test_tally_is_the_same_after_its_way_through_a_status() -> None:
    counted = tally("a", 3, 1, spread(b2=4)) + tally("b", 1, 0, spread(b5=1))
    stored = json.loads(json.dumps({"busy": 1, "tally": counted.as_status()}))
    assert Tally.from_status(stored) == counted
    assert Tally.from_status({}) == Tally()


def test_status_of_a_version_that_counts_otherwise_is_left_out() -> None:
    stored = tally("a", 3).as_status() | {"b": [[1], [1, 0.5], [1, 0.5], 0, {}]}
    assert list(Tally.from_status({"tally": stored}).kinds) == ["a"]


def test_however_many_kinds_there_are_a_status_stays_small() -> None:
    counted = Tally()
    for n in range(10 * MAX_KINDS):
        counted.of(f"kind-{n}").endings[0] += 1
    assert counted.count() == 10 * MAX_KINDS
    assert len(counted.kinds) == MAX_KINDS + 1
    assert counted.count(kind=OTHER) == 9 * MAX_KINDS
    assert len(json.dumps(counted.as_status())) < 20_000
    assert counted.count(RunOutcome.COMPLETED, "kind-0") == 1
