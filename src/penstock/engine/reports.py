"""What an error tells of the lane it happened in."""

from __future__ import annotations

from penstock.model.errors import (
    AuthenticationError,
    DeadlineExceeded,
    RateLimited,
    Unavailable,
)
from penstock.ports.queue import News, Report


def report_of(error: BaseException) -> Report | None:
    """None: nothing. Bugs, 4xx and cancellations say nothing about a dependency."""
    lane = getattr(error, "lane", None)
    match error:
        case RateLimited():
            return Report(News.RATE_LIMITED, error.retry_after, lane)
        case AuthenticationError():
            return Report(News.REFUSED, None, lane)
        case DeadlineExceeded():
            return None
        case Unavailable() | ConnectionError() | TimeoutError():
            return Report(News.UNAVAILABLE, None, lane, getattr(error, "address", None))
        case _:
            return None
