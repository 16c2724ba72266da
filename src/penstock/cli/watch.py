"""Follows jobs: live on a terminal, otherwise a line per change."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.app import Penstock
from penstock.cli.job_view import about, summary
from penstock.cli.output import STATE_STYLES, console, is_terminal, note, print_json_line, say
from penstock.cli.text import age, plural
from penstock.errors import JobNotFound, QueueUnavailable
from penstock.model.job import Job, JobState
from penstock.model.redact import hidden_job
from penstock.ports.operators import KindCounts
from penstock.ports.queue import JobQueue, Topic

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")
Show = Callable[[T], None]

POLL_SECONDS = 0.25
"""Polling interval: claims and progress send no notifications."""
PAUSE_SECONDS = 0.05
"""Minimum interval between two polls, however busy the queue."""
UNAVAILABLE_SECONDS = 1.0


async def watch_jobs(app: Penstock, ids: Sequence[str], *, as_json: bool) -> list[Job]:
    """Show jobs until all have finished; returns how they ended. Raises JobNotFound if one does not
    exist."""
    names = app.config.logging.hidden_names
    with _shown(_jobs_table, _each_change, as_json=as_json) as show:
        listener = app.queue.listen(Topic.FINISHED)
        try:
            async for jobs in looks(lambda: _get(app.queue, ids)):
                show(jobs if as_json else [hidden_job(job, names) for job in jobs])
                if all(job.state.finished for job in jobs):
                    return jobs
                await listener.wait(POLL_SECONDS)
        finally:
            listener.close()
    raise AssertionError("looks do not end by themselves")


async def watch_counts(app: Penstock, *, until_idle: bool, as_json: bool) -> None:
    """Show the number of jobs in each state; with `until_idle`, until nothing is left to do."""

    async def look() -> tuple[bool, list[KindCounts], float]:
        begun = time.monotonic()
        # In this order: what is counted when no work is left will not change.
        busy = await app.queue.work_left(None)
        return busy, await app.counts(), time.monotonic() - begun

    with _shown(_counts_table, _each_total, as_json=as_json) as show:
        async for busy, counts, took in looks(look):
            show(counts)
            if until_idle and not busy:
                return
            # Counting reads every job: on a large queue, spend a fifth of the time on it.
            await asyncio.sleep(max(POLL_SECONDS, 4 * took))


async def _get(queue: JobQueue, ids: Sequence[str]) -> list[Job]:
    found = await queue.get(ids)
    for job_id in ids:
        if job_id not in found:
            raise JobNotFound(job_id)
    return [found[job_id] for job_id in ids]


async def looks(look: Callable[[], Awaitable[T]]) -> AsyncIterator[T]:
    """Yield what `look` finds, repeatedly; waits while the queue is unreachable."""
    available = True
    while True:
        try:
            found = await look()
        except QueueUnavailable as error:
            if available:
                note(f"waiting for the queue: {error}")
            available = False
            await asyncio.sleep(UNAVAILABLE_SECONDS)
            continue
        available = True
        yield found
        await asyncio.sleep(PAUSE_SECONDS)


@contextmanager
def _shown(
    table: Callable[[T, int], RenderableType], lines: Callable[[bool], Show[T]], *, as_json: bool
) -> Iterator[Show[T]]:
    """Yield a function that shows the newest state."""
    if as_json or not is_terminal():
        yield lines(as_json)
        return
    from rich.live import Live

    screen = console()
    with Live(console=screen, auto_refresh=False) as live:
        yield lambda found: live.update(table(found, screen.height - 6), refresh=True)


def _each_change(as_json: bool) -> Show[Sequence[Job]]:
    seen: dict[str, tuple[Any, ...]] = {}

    def show(jobs: Sequence[Job]) -> None:
        for job in jobs:
            now = (job.state, job.attempts, job.progress, job.message, job.waiting_for)
            if seen.get(job.id) == now:
                continue
            seen[job.id] = now
            if as_json:
                print_json_line(summary(job))
            else:
                say(f"{job.id}  {job.kind}  {job.state:<9}  {about(job)}".rstrip())

    return show


def _each_total(as_json: bool) -> Show[Sequence[KindCounts]]:
    seen: dict[str, int] = {}

    def show(counts: Sequence[KindCounts]) -> None:
        nonlocal seen
        now = totals(counts)
        if now != seen:
            seen = now
            if as_json:
                print_json_line(now)
            else:
                say("  ".join(f"{state} {count}" for state, count in now.items()))

    return show


def totals(counts: Sequence[KindCounts]) -> dict[str, int]:
    """Sum the jobs in each state over all kinds."""
    return {str(state): sum(kind.states.get(state, 0) for kind in counts) for state in JobState}


def _jobs_table(jobs: Sequence[Job], room: int) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    states = Counter(job.state for job in jobs)
    table = Table(box=None, pad_edge=False, show_header=False, caption_justify="left")
    for shrinks in (False, False, False, False, True):
        table.add_column(no_wrap=not shrinks)
    # What happens now goes first; what does not fit on the screen is only counted.
    order = [JobState.RUNNING, JobState.FAILED, JobState.CANCELLED, JobState.QUEUED]
    ranked = sorted(jobs, key=lambda j: order.index(j.state) if j.state in order else len(order))
    for job in ranked[: max(room, 1)]:
        done = 1.0 if job.state is JobState.COMPLETED else job.progress
        since = job.started_at or job.enqueued_at
        table.add_row(
            job.id,
            job.kind,
            Text(str(job.state), style=STATE_STYLES[job.state]),
            ProgressBar(total=1.0, completed=done, width=20),
            Text(about(job) or age(since), no_wrap=True, overflow="ellipsis"),
        )
    counts = ", ".join(f"{states[state]} {state}" for state in JobState if states[state])
    table.caption = f"{plural(len(jobs), 'job')}: {counts}"
    return table


def _counts_table(counts: Sequence[KindCounts], room: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from penstock.cli.output import rich_table
    from penstock.cli.status import counts_table

    rows, looks = counts_table(counts)
    table = rich_table(rows[-max(room, 2) :], looks)
    return Group(table, Text("Ctrl-C stops watching; the jobs continue.", style="dim"))
