"""The backlog of a queue in Redis: lines by their lengths, and by a sample of those that are long.

Redis has no statement that folds rows. So all of a short line is read, and of a long one so many
jobs, evenly spread, as tell how it is made up. Each call reads a bounded number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from penstock.adapters.redis.connections import Connections
from penstock.lanes.state import LaneState
from penstock.model.amounts import NOTHING, Amounts
from penstock.ports.backlog import (
    PAST_RUNS,
    Backlog,
    PastRun,
    RunningJob,
    WaitingJobs,
    amount_class,
    number_class,
)

ROWS = 500
"""Jobs that are read in a call."""
SAMPLE = 5000
"""Jobs of a line that are read, at most."""


class _Job(NamedTuple):
    kind: str
    tenant: str
    lane: str
    band: int
    due: bool
    place: float
    amount: Amounts


async def read(connections: Connections, lanes: Iterable[LaneState], now: float) -> Backlog:
    lines, scheduled = await connections.call("backlog", {})
    waiting: list[WaitingJobs] = []
    for lane, kind, key, length in lines:
        jobs = [
            _Job(kind, tenant, lane, int(band), True, float(turn), _amount(amount))
            for tenant, band, turn, amount in await _rows(connections, key, length)
        ]
        waiting += fold(jobs, length, now)
    later = [
        _Job(kind, tenant, lane, int(band), False, float(at), _amount(amount))
        for kind, tenant, lane, band, at, amount in await _rows(connections, "scheduled", scheduled)
    ]
    waiting += fold(later, scheduled, now)
    running = [
        RunningJob(kind, tenant, lane, int(band), process, float(since), _amount(amount))
        for kind, tenant, lane, band, process, since, amount in await connections.call(
            "backlog_held", {}
        )
    ]
    past = [
        PastRun(kind, lane, float(ended), max(0.0, float(seconds)), int(attempts), _amount(amount))
        for kind, lane, ended, seconds, attempts, amount in await _newest(connections)
    ]
    return Backlog(now, waiting, running, [asdict(lane) for lane in lanes], past)


def fold(jobs: Sequence[_Job], whole: int, now: float) -> list[WaitingJobs]:
    """Groups of jobs, of which these are a sample if there are more of them on the whole."""
    groups: dict[tuple[Any, ...], list[_Job]] = {}
    for job in jobs:
        later = 0 if job.due else number_class(max(0, int(job.place - now)))
        key = *job[:5], later, amount_class(job.amount)
        groups.setdefault(key, []).append(job)
    found = []
    seen = given = 0
    for (kind, tenant, lane, band, due, *_), some in groups.items():
        seen += len(some)
        count = max(whole, len(jobs)) * seen // len(jobs) - given  # so that all of them are so many
        given += count
        places = [job.place for job in some]
        mean = [sum(parts) / len(some) for parts in zip(*(job.amount for job in some), strict=True)]
        amount = Amounts(*(round(part * count) for part in mean))
        found.append(
            WaitingJobs(kind, tenant, lane, band, due, count, min(places), max(places), amount)
        )
    return found


async def _rows(connections: Connections, key: str, length: int) -> list[Any]:
    """The jobs of a line, or a sample of them."""
    found: list[Any] = []
    for first, last in parts_of(length):
        (rows,) = await connections.call("backlog_jobs", {"parts": [[key, first, last]]})
        found += rows
    return found


def parts_of(length: int) -> Iterator[tuple[int, int]]:
    """Parts of a line, by rank: all of it, or evenly spread ones; the first and the last are in."""
    if length <= SAMPLE:
        for first in range(0, length, ROWS):
            yield first, min(length, first + ROWS) - 1
        return
    parts = SAMPLE // ROWS
    for n in range(parts):
        first = (length - ROWS) * n // (parts - 1)
        yield first, first + ROWS - 1


async def _newest(connections: Connections) -> list[Any]:
    found: list[Any] = []
    for first in range(0, PAST_RUNS, ROWS):
        (rows,) = await connections.call(
            "backlog_jobs", {"parts": [["finished", first, first + ROWS - 1]]}
        )
        found += rows
        if not rows:
            break
    return found


def _amount(text: str) -> Amounts:
    return Amounts.read(text) or NOTHING
