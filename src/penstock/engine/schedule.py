"""Computes when a periodic job is due: by interval, or by cron expression.

Every process has to come to the same ticks, whenever it looks. So a tick follows from the schedule
and the queue's clock alone: never from when a process started, or what it did last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

from penstock import runtime
from penstock.errors import ConfigError

CATCH_UP_SECONDS = 3600.0
"""How late a tick is still made up, unless told otherwise."""
LEAST_CATCH_UP = 1.0
"""Less would be missed by a process that is merely busy."""
LEAST_SECONDS = 0.1
LEAST_ROW_SECONDS = 1.0
"""Of a schedule that is a row: each tick writes it."""
MAX_SECONDS = 366 * 86400.0
EXPRESSION_LIMIT = 200
_MICRO = 1_000_000
_WIDER = 8


class Schedule(Protocol):
    """Its `str` is what people are shown."""

    def after(self, at: float) -> float:
        """The first tick later than `at`; both are seconds since 1970."""
        ...


@dataclass(slots=True, frozen=True)
class Every:
    """Multiples of an interval since 1970."""

    seconds: float

    def after(self, at: float) -> float:
        # In whole microseconds: with fractions, the tick after a tick could be the same again.
        step = round(self.seconds * _MICRO)
        return (round(at * _MICRO) // step + 1) * step / _MICRO

    def __str__(self) -> str:
        return f"every {self.seconds:g} s"


@dataclass(slots=True, frozen=True)
class Cron:
    """A cron expression of five fields, or six with seconds first, in a time zone.

    Where clocks change it does as Debian's cron: a time that is left out comes right after the
    gap, a time that comes twice counts once. Expressions with `*` for minute or hour go by the
    time that passes.
    """

    expression: str
    zone: tzinfo

    def after(self, at: float) -> float:
        from cronsim import CronSim

        start = datetime.fromtimestamp(math.floor(at), self.zone)
        for moment in CronSim(self.expression, start):
            # In an hour that comes twice it may begin with the first of the two.
            if (tick := moment.timestamp()) > at:
                return tick
        raise ConfigError(f"cron {self.expression!r} is due at no time in the next 50 years")

    def __str__(self) -> str:
        return f"{self.expression} ({self.zone})"


@dataclass(slots=True, frozen=True)
class Periodic:
    """The schedule of a kind, as given to `@app.job`."""

    schedule: Schedule
    overlap: bool
    """Whether a tick is enqueued although the job of an earlier one has not finished."""
    catch_up: float
    """A tick that nobody was there for is made up for so many seconds."""


def newest(schedule: Schedule, since: float, now: float) -> float | None:
    """The last tick later than `since` and not later than `now`."""
    width = LEAST_SECONDS
    while True:
        # Not all the way from `since`: there may be very many.
        start = max(since, now - width)
        tick = schedule.after(start)
        if tick <= now:
            while (later := schedule.after(tick)) <= now:
                tick = later
            return tick
        if start == since:
            return None
        width *= _WIDER


def make_periodic(
    kind: str,
    *,
    every: float | None,
    cron: str | None,
    timezone: str | None,
    overlap: bool,
    catch_up: float | None,
) -> Periodic | None:
    """What the options of a job say; None if they name no schedule. ConfigError if they make no
    sense."""
    if every is None and cron is None:
        if timezone is not None or overlap or catch_up is not None:
            raise ConfigError(
                f"timezone, overlap and catch_up of {kind!r} need a schedule: every= or cron="
            )
        return None
    if every is not None and cron is not None:
        raise ConfigError(f"{kind!r} has every= and cron=: give one of them")
    if every is not None and timezone is not None:
        raise ConfigError(f"timezone of {kind!r} is for cron=; every= counts seconds since 1970")
    late = CATCH_UP_SECONDS if catch_up is None else catch_up
    late = _seconds(kind, "catch_up", late, LEAST_CATCH_UP)
    schedule: Schedule
    if cron is not None:
        schedule = _cron(kind, cron, "UTC" if timezone is None else timezone)
    else:
        schedule = Every(_seconds(kind, "every", every, LEAST_SECONDS))
    return Periodic(schedule, overlap, late)


def schedule_of(
    name: str, every: float | None, cron: str | None, timezone: str = "UTC"
) -> Schedule:
    """The schedule of a row. ConfigError if it makes no sense."""
    if (every is None) == (cron is None):
        raise ConfigError(f"schedule {name!r} needs every= or cron=, and one of them")
    if cron is not None:
        return _cron(name, cron, timezone)
    if timezone != "UTC":
        raise ConfigError(f"timezone of {name!r} is for cron=; every= counts seconds since 1970")
    return Every(_seconds(name, "every", every, LEAST_ROW_SECONDS))


def catch_up_of(name: str, seconds: float | None) -> float:
    """How late a tick of a row is still made up. ConfigError if it makes no sense."""
    late = CATCH_UP_SECONDS if seconds is None else seconds
    return _seconds(name, "catch_up", late, LEAST_CATCH_UP)


def _seconds(kind: str, name: str, value: Any, least: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= MAX_SECONDS:
        raise ConfigError(
            f"{name} of {kind!r} is in seconds, from {least:g} to {MAX_SECONDS:.0f}, not {value!r}"
        )
    return float(value)


def _cron(kind: str, expression: Any, timezone: Any) -> Cron:
    try:
        # Imported where it is needed: it is an extra.
        from cronsim import CronSim, CronSimError
    except ModuleNotFoundError:
        raise ConfigError(f"cron= of {kind!r} needs: pip install 'penstock[cron]'") from None
    if not isinstance(expression, str) or len(expression) > EXPRESSION_LIMIT:
        raise ConfigError(f"cron of {kind!r} must be like '0 3 * * *', not {expression!r}")
    schedule = Cron(" ".join(expression.split()), _zone(kind, timezone))
    try:
        CronSim(schedule.expression, datetime.fromtimestamp(runtime.now(), UTC))
    except CronSimError as error:
        raise ConfigError(f"cron of {kind!r} is {expression!r}: {error}") from None
    schedule.after(runtime.now())
    return schedule


def _zone(kind: str, name: Any) -> tzinfo:
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        raise ConfigError(
            f"timezone of {kind!r} must be one that this machine knows, such as "
            f"'Europe/Zurich', not {name!r}"
        ) from None
