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
    lane, told = getattr(error, "lane", None), getattr(error, "told", False)
    match error:
        case RateLimited():
            return Report(News.RATE_LIMITED, error.retry_after, lane, told=told)
        case AuthenticationError():
            return Report(News.REFUSED, None, lane, told=told)
        case DeadlineExceeded():
            return None
        case Unavailable() | ConnectionError() | TimeoutError():
            address = getattr(error, "address", None)
            return Report(News.UNAVAILABLE, None, lane, address, told)
        case _:
            return None
