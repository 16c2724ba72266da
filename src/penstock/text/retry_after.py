"""Parses Retry-After headers."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from penstock import runtime

MAX_RETRY_AFTER = 7 * 86400.0


def retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header: a number or an HTTP date; None if it is neither."""
    if value is None:
        return None
    try:
        if value.strip().isdigit():
            seconds = float(value)
        else:
            date = parsedate_to_datetime(value)
            if date.tzinfo is None:  # "-0000" and nothing at all mean UTC
                date = date.replace(tzinfo=UTC)
            seconds = date.timestamp() - runtime.now()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER)
