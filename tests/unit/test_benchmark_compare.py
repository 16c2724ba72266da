"""Two commits side by side: which figures have moved."""

import math
from collections.abc import Sequence

import pytest

from benchmarks.compare import Comparison, compare
from benchmarks.rendering import figure_text
from benchmarks.report import Better, Figure, Result


def runs(values: Sequence[float], what: str = "jobs", better: Better = Better.MORE) -> list[Result]:
    return [Result("speed", what, "1/s", Figure.of("us", [one]), better=better) for one in values]


def compared(
    then: Sequence[float], now: Sequence[float], better: Better = Better.MORE
) -> Comparison:
    (one,) = compare(runs(then, better=better), runs(now, better=better))
    return one


@pytest.mark.parametrize(
    ("then", "now", "better", "moved", "worse"),
    [
        ([100, 101, 99], [94, 93, 95], Better.MORE, True, True),
        ([100, 101, 99], [107, 108, 106], Better.MORE, True, False),
        ([100, 101, 99], [96, 97, 95], Better.MORE, False, False),
        ([100, 101, 99], [107, 108, 106], Better.LESS, True, True),
        ([100, 101, 99], [90, 91, 89], Better.LESS, True, False),
        ([100, 130, 80], [70, 72, 71], Better.MORE, False, False),
        ([0, 0, 0], [0, 0, 0], Better.LESS, False, False),
        ([0, 0, 0], [3, 3, 3], Better.LESS, True, True),
    ],
)
def test_a_figure_has_moved_when_it_differs_by_more_than_its_runs_do(
    then: Sequence[float], now: Sequence[float], better: Better, moved: bool, worse: bool
) -> None:
    one = compared(then, now, better)
    assert (one.moved, one.worse) == (moved, worse)


def test_the_change_says_how_much_better_whichever_direction_is_good() -> None:
    assert compared([100], [110]).change == pytest.approx(0.1)
    assert compared([110], [100], Better.LESS).change == pytest.approx(0.1)
    assert math.isnan(compared([0], [1]).change)


def test_only_what_both_have_is_compared() -> None:
    then = [*runs([1]), *runs([1], "old")]
    now = [*runs([1], "new"), *runs([1])]
    unmeasured = Result("speed", "jobs", "1/s", None)
    assert [one.key[1] for one in compare([*then, unmeasured], now)] == ["jobs"]


def test_peer_that_was_left_out_is_written_as_none() -> None:
    assert figure_text(Figure.of("huey", [math.nan, math.nan]), "1/s") == "-"
