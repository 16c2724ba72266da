"""No lane learns of the same error twice, however often that is raised."""

import gc
from dataclasses import dataclass

from penstock.errors import FetchError, HttpError, RateLimited, Unavailable
from penstock.lanes.reports import KEPT, LaneReports
from penstock.ports.lanes import News, Report


@dataclass
class Own(Unavailable):
    """One that cannot be hashed, as that of a user may be."""

    why: str


def test_report_tells_whether_its_lane_knows() -> None:
    reports, error, other = LaneReports(), RateLimited("slow down", 3.0), RateLimited("again")
    assert reports.of(error) == Report(News.RATE_LIMITED, 3.0)
    reports.note(error, Report(News.RATE_LIMITED, 3.0, "api"))
    assert reports.of(error) == Report(News.RATE_LIMITED, 3.0, "api", told=True)
    assert reports.of(other) == Report(News.RATE_LIMITED)
    assert error.lane is None, "the error itself is left alone"


def test_error_may_be_of_a_kind_that_cannot_be_hashed() -> None:
    reports, error = LaneReports(), Own("gone")
    reports.note(error, Report(News.UNAVAILABLE))
    assert reports.knows(error)
    assert not reports.knows(Own("gone"))
    assert not reports.knows(ConnectionError())


def test_what_is_raised_in_other_words_is_the_same() -> None:
    reports, error, same = LaneReports(), HttpError("404", 404), FetchError("no document", 404)
    reports.pass_on(error, same)
    assert not reports.knows(same), "nobody knew of the first"
    reports.note(error, Report(News.SUCCESS, None, "host:a"))
    reports.pass_on(error, same)
    assert reports.of(same) == Report(News.SUCCESS, None, "host:a", told=True)


def test_errors_are_not_kept_alive_and_few_are_remembered() -> None:
    reports = LaneReports()
    kept = [Unavailable(str(n)) for n in range(KEPT + 1)]
    for error in kept:
        reports.note(error, Report(News.UNAVAILABLE))
    assert not reports.knows(kept[0])
    assert reports.knows(kept[1])
    before = sum(known() is not None for known, _ in reports._learnt)
    del error
    kept.clear()
    gc.collect()
    assert (before, sum(known() is not None for known, _ in reports._learnt)) == (KEPT, 0)
