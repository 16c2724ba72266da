"""How the time of a claim grows with the backlog."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path

from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from penstock.adapters.sqlite import SqliteQueue
from penstock.model.ids import new_ids
from penstock.ports.queue import (
    NO_LANE,
    JobQueue,
    KindDefaults,
    Lease,
    Member,
    NewJob,
    NewJobs,
    Outcome,
    Settlement,
    Want,
)

HANDLED = ("a", "b", "c", "d", "e")
FOREIGN = "nobody"
"""Half of the backlog is of a kind that this process cannot do."""
LIMIT = 50
BATCH = 10_000
WARM_UP = 5


def run(sizes: Sizes, folder: Path) -> list[Result]:
    return asyncio.run(_run(sizes, folder))


async def _run(sizes: Sizes, folder: Path) -> list[Result]:
    async with (
        _backlog(folder / "small.db", sizes.small_backlog) as small,
        _backlog(folder / "large.db", sizes.large_backlog) as large,
    ):
        return [
            await _compare(small, large, moving=False, sizes=sizes),
            await _compare(small, large, moving=True, sizes=sizes),
        ]


class Backlog:
    """A queue with many jobs in it, and a member that claims from it."""

    def __init__(self, queue: JobQueue, member: Member) -> None:
        self._queue = queue
        self._member = member
        self._want = Want(LIMIT, {kind: KindDefaults(60.0, 3) for kind in HANDLED}, crashed=True)

    async def fill(self, count: int) -> None:
        share = count // 2 // len(HANDLED)
        for kind, jobs in [(FOREIGN, count // 2), *((kind, share) for kind in HANDLED)]:
            for first in range(0, jobs, BATCH):
                await self._add(kind, min(BATCH, jobs - first))

    async def claim(self, *, moving: bool) -> float:
        """Milliseconds of one claim. What was claimed goes back in line, or, if `moving`, is
        completed and as much enqueued: then each claim reads another part of the line."""
        start = time.perf_counter()
        exchange = await self._member.exchange([], [], self._want)
        spent = (time.perf_counter() - start) * 1000
        assert len(exchange.leases) == LIMIT
        ending = _completed if moving else _handed_back
        await self._member.exchange([ending(lease) for lease in exchange.leases], [], None)
        if moving:
            for kind in HANDLED:
                await self._add(kind, LIMIT // len(HANDLED))
        return spent

    async def _add(self, kind: str, count: int) -> None:
        items = [NewJob(job_id, '{"n":1}', None, NO_LANE) for job_id in new_ids(count)]
        await self._queue.enqueue(NewJobs(kind, items, timeout=60.0, max_retries=3))


@asynccontextmanager
async def _backlog(path: Path, count: int) -> AsyncIterator[Backlog]:
    # Without fsync: the disk's time would hide how the claim's own grows.
    queue = SqliteQueue(f"sqlite:///{path}", durable=False)
    await queue.open()
    try:
        member = await queue.join(HANDLED, 10, lease_seconds=3600.0)
        backlog = Backlog(queue, member)
        await backlog.fill(count)
        yield backlog
        await member.leave()
    finally:
        await queue.close()


async def _compare(small: Backlog, large: Backlog, *, moving: bool, sizes: Sizes) -> Result:
    spent: tuple[list[float], list[float]] = ([], [])
    turns = zip(cycle((small, large)), cycle(spent), strict=True)
    for backlog, times in islice(turns, 2 * (sizes.claims + WARM_UP)):
        times.append(await backlog.claim(moving=moving))
    few, many = (Figure.of(who, times[WARM_UP:]) for who, times in zip("sl", spent, strict=True))
    what = "each claim further down the line" if moving else "the same head of the line"
    note = (
        f"{LIMIT} jobs of {len(HANDLED)} kinds, half of the backlog of a kind nobody handles, no "
        f"fsync; median of {sizes.claims} claims, "
    )
    return Result(
        "claim time by backlog, SQLite",
        f"{what}, {sizes.large_backlog:,} queued against {sizes.small_backlog:,}",
        "x",
        Figure.of("penstock", [many.value / few.value]),
        None,
        Better.LESS,
        AtMost(2, "x"),
        note + f"{what}: {few.value:.2f} ms and {many.value:.2f} ms.",
    )


def _completed(lease: Lease) -> Settlement:
    now = time.time()
    return Settlement(lease, Outcome.COMPLETED, now, now, "null")


def _handed_back(lease: Lease) -> Settlement:
    return Settlement(lease, Outcome.HANDED_BACK)
