"""Derives the report to a lane from an error, and keeps what lanes have learnt of errors."""

from __future__ import annotations

import weakref
from collections import deque

from penstock.errors import (
    AuthenticationError,
    DeadlineExceeded,
    HttpError,
    RateLimited,
    Unavailable,
)
from penstock.ports.lanes import News, Report

KEPT = 256
"""Errors that are remembered: those that end a job do so soon after they ended a request."""


def report_of(error: BaseException) -> Report | None:
    """None: nothing. Bugs and cancellations say nothing about a dependency."""
    lane = getattr(error, "lane", None)
    match error:
        case RateLimited():
            resets_after = error.resets_after
            return Report(
                News.RATE_LIMITED, error.retry_after, lane, None, resets_after=resets_after
            )
        case AuthenticationError():
            return Report(News.REFUSED, None, lane)
        case DeadlineExceeded():
            return None
        case Unavailable() | ConnectionError() | TimeoutError():
            address = getattr(error, "address", None)
            return Report(News.UNAVAILABLE, None, lane, address)
        case HttpError() if error.status:  # a 4xx: the service is there, and answers
            return Report(News.SUCCESS, None, lane)
        case _:
            return None


class LaneReports:
    """What lanes have learnt of errors. The error that ended a request may end its job as well, or
    several that shared the request: no lane is to learn of it twice."""

    def __init__(self) -> None:
        self._learnt: deque[tuple[weakref.ref[BaseException], Report | None]]
        self._learnt = deque(maxlen=KEPT)

    def note(self, error: BaseException, report: Report | None) -> None:
        """A lane has learnt of the error, by this report."""
        told = None if report is None else report._replace(told=True)
        self._learnt.append((weakref.ref(error), told))

    def knows(self, error: BaseException) -> bool:
        return any(known() is error for known, _ in self._learnt)

    def of(self, error: BaseException) -> Report | None:
        """What to tell of the error: `told` if a lane knows already."""
        for known, report in reversed(self._learnt):
            if known() is error:
                return report
        return report_of(error)

    def pass_on(self, error: BaseException, other: BaseException) -> None:
        """The error is raised in other words."""
        if self.knows(error):
            self.note(other, self.of(error))
