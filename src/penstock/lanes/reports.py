"""Derives the report to a lane from an error."""

from __future__ import annotations

from penstock.errors import (
    AuthenticationError,
    DeadlineExceeded,
    HttpError,
    RateLimited,
    Unavailable,
)
from penstock.ports.lanes import News, Report


def report_of(error: BaseException) -> Report | None:
    """None: nothing. Bugs and cancellations say nothing about a dependency."""
    lane, told = getattr(error, "lane", None), getattr(error, "told", False)
    match error:
        case RateLimited():
            resets_after = error.resets_after
            return Report(News.RATE_LIMITED, error.retry_after, lane, None, told, resets_after)
        case AuthenticationError():
            return Report(News.REFUSED, None, lane, told=told)
        case DeadlineExceeded():
            return None
        case Unavailable() | ConnectionError() | TimeoutError():
            address = getattr(error, "address", None)
            return Report(News.UNAVAILABLE, None, lane, address, told)
        case HttpError() if error.status:  # a 4xx: the service is there, and answers
            return Report(News.SUCCESS, None, lane, told=told)
        case _:
            return None
