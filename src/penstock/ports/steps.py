"""Steps as they go into a queue and come out of it."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.payload import read_json
from penstock.model.step import Step


class StepRow(NamedTuple):
    """A step as it is stored. Without a result it only counts the attempts so far."""

    key: str
    """See `penstock.model.step.step_key`."""
    name: str
    arguments: str
    occurrence: int
    version: str
    lane: str | None
    attempts: int
    started_at: float
    finished_at: float | None = None
    result: str | None = None
    """JSON text."""


SIGNAL_LIMIT = 10_000
"""Signals that one job gets, at most."""


class Consumed(NamedTuple):
    """The outcome of a look for a signal."""

    held: bool
    """False: the lease is lost."""
    payload: str | None
    """JSON text; None: there is no signal yet."""


def signal_wait(name: str) -> str:
    """What a queued job that waits for a signal has in place of the lane it waits for. No lane has
    a newline in its name."""
    return f"signal\n{name}"


SIGNAL_REASON = "the signal "


def signal_reason(name: str) -> str:
    """What a queued job says that it waits for."""
    return f"{SIGNAL_REASON}{name!r}"


def shown(row: StepRow) -> Step:
    """The step as people and programs are given it."""
    return Step(
        row.name,
        row.occurrence,
        row.arguments,
        row.attempts,
        row.version,
        row.lane,
        row.started_at,
        row.finished_at,
        None if row.result is None else read_json(row.result),
    )
