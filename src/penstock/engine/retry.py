"""Computes when a failed job is retried."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeGuard

from penstock import runtime
from penstock.errors import ConfigError
from penstock.model.settings import EngineConfig

log = logging.getLogger("penstock")

Backoff = float | Sequence[float] | Callable[[int], float]
"""Seconds before each retry; before the first, the second ... (the last goes on); or a function of
the number of the run that failed."""
MAX_SECONDS = 366 * 86400.0


OwnBackoff = Callable[[int], float | None]
"""A kind's own backoff; None where it says nothing that can be used."""


def backoff_of(kind: str, given: Backoff) -> OwnBackoff:
    """The backoff that a kind was given; ConfigError if it is none."""
    if callable(given):
        ask: Callable[[int], object] = given
    else:
        delays = [given] if isinstance(given, int | float) else list(given)
        if not delays or not all(_is_delay(delay) for delay in delays):
            raise ConfigError(
                f"backoff of {kind!r} is seconds, a list of them, or a function of the attempt, "
                f"not {given!r}"
            )

        def ask(attempt: int) -> object:
            return delays[min(attempt, len(delays)) - 1]

    def own(attempt: int) -> float | None:
        try:
            delay = ask(attempt)
        except Exception:  # a mistake in it must not cost the outcome of the run
            log.exception("backoff function of %r failed; using the default backoff", kind)
            return None
        if _is_delay(delay):
            return float(delay)
        log.error(
            "backoff function of %r returned %r instead of seconds; using the default backoff",
            kind,
            delay,
        )
        return None

    return own


def _is_delay(seconds: object) -> TypeGuard[float]:
    return isinstance(seconds, int | float) and 0 <= seconds <= MAX_SECONDS


def retry_delay(attempt: int, settings: EngineConfig, own: OwnBackoff | None = None) -> float:
    """Seconds to wait after run number `attempt` failed: what the kind's own backoff says, else
    full jitter under a doubling cap.

    Full jitter because jobs that failed together should not come back together.
    """
    if own is not None and (delay := own(attempt)) is not None:
        return delay
    ceiling = settings.retry_base_seconds * 2.0 ** min(attempt - 1, 60)
    return runtime.uniform(0, min(settings.retry_cap_seconds, ceiling))


def reconnect_delay(failures: int, settings: EngineConfig) -> float:
    """Seconds before the next try to reach the queue; at least half of it is certain."""
    ceiling = settings.reconnect_first_seconds * 2.0 ** min(failures - 1, 60)
    return min(settings.reconnect_cap_seconds, ceiling) * runtime.uniform(0.5, 1.0)
