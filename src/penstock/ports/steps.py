"""Steps as they go into a queue and come out of it."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from penstock.model.job import Job
from penstock.model.payload import read_json
from penstock.model.step import ReceiptDetails, Step, StepKind, short_hash


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
    """JSON text, or where that is: see `LargeResult`."""
    details: str | None = None
    """Of a receipt, JSON text: `ReceiptDetails` without what is None."""


class LargeResult(NamedTuple):
    """A result that is in the blob store, under the id of its job."""

    digest: str
    size: int

    def __str__(self) -> str:
        """As it is stored in place of the result. No JSON text begins so."""
        return f"{_LARGE}{self.digest}:{self.size}"


_LARGE = "blob:"


def large_result(result: str | None) -> LargeResult | None:
    """Where a result is that is not stored with its step."""
    if result is None or not result.startswith(_LARGE):
        return None
    digest, size = result.removeprefix(_LARGE).split(":")
    return LargeResult(digest, int(size))


SECRET_BYTES = 32
RECEIPT_SECRET = "receipts"  # noqa: S105 (its name)
"""Name of the secret that requests are hashed with."""


EVENT_NAME = ""
"""The name of an emitted event, which is stored as a step is. No step has it."""


class Recorded(NamedTuple):
    """A record, and where it stands among those of its job."""

    position: int
    row: StepRow
    """Without its result, unless it is an event."""


SIGNAL_LIMIT = 10_000
"""Signals that one job gets, at most."""


class Consumed(NamedTuple):
    """The outcome of a look for a signal."""

    held: bool
    """False: the lease is lost."""
    payload: str | None
    """JSON text; None: there is no signal yet."""


NO_END = 2.0**33
"""When a wait without a timeout would end: in the year 2242."""
SLEEP_WAIT = "sleep\n"
"""What a queued job that sleeps has in place of the lane it waits for. No lane has a newline in its
name."""
SIGNAL_WAIT = "signal\n"


def signal_wait(name: str) -> str:
    """The same for one that waits for a signal."""
    return SIGNAL_WAIT + name


SIGNAL_REASON = "the signal "


def signal_reason(name: str) -> str:
    """What a queued job says that it waits for."""
    return f"{SIGNAL_REASON}{name!r}"


def has_end(until: float) -> bool:
    """Whether a wait that ends then has a timeout. (Corrections of the clock move NO_END.)"""
    return until < NO_END / 2


def awaited_signal(wait: str | None) -> str | None:
    """The signal that a job waits for, by what it has in place of a lane."""
    return None if wait is None or not wait.startswith(SIGNAL_WAIT) else wait[len(SIGNAL_WAIT) :]


WAIT_HASH = short_hash("wait")
"""What a wait has in place of a hash of arguments. No step has it: what they hash is a list."""


END_HASH = short_hash("end of a wait")
"""The same for the record of when a wait for a signal ends."""


def is_sleep(step: Step) -> bool:
    """Whether it is a sleep, whose result is the time of its end."""
    return step.arguments == WAIT_HASH and step.name == "sleep"


def is_internal(step: Step) -> bool:
    """Whether it only records when a wait for a signal ends."""
    return step.arguments == END_HASH


def waits_for_signal(job: Job) -> bool:
    """Whether it says so: then its `run_at` is only a timeout, or none."""
    return (job.waiting_for or "").startswith(SIGNAL_REASON)


def signal_of(job: Job) -> str | None:
    """The name of the signal that a queued job says it waits for."""
    said = _QUOTED.match((job.waiting_for or "").removeprefix(SIGNAL_REASON))
    return str(ast.literal_eval(said[0])) if said and waits_for_signal(job) else None


_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


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
        _kind(row),
        None if row.details is None else ReceiptDetails(**read_json(row.details)),
    )


def _kind(row: StepRow) -> StepKind:
    if row.details is not None:
        return "receipt"
    return "wait" if row.arguments in (WAIT_HASH, END_HASH) else "step"
