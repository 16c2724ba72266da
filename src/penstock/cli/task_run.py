"""Runs a research task in the process of a command, and follows it to the end."""

from __future__ import annotations

import asyncio

from penstock.aio import end_tasks
from penstock.app import Penstock
from penstock.cli.errors import ExitCode
from penstock.cli.output import note, print_event, say
from penstock.cli.stopping import EXIT_SECONDS, Signals, exit_after
from penstock.cli.task_view import print_troubles, print_works, results
from penstock.cli.task_watch import TaskDisplay, show_for
from penstock.cli.watch import looks
from penstock.cli.worker import working
from penstock.model.job import JobState
from penstock.model.research import TaskStatus
from penstock.research.job_ids import SEARCH, log_of
from penstock.research.service import MAX_LISTED
from penstock.wire.tasks import TaskView

KINDS = ("research.*", "ingest.*")
"""Kinds to run; the jobs of documents read pages."""
LOOK_SECONDS = 1.0
"""Polling interval: what jobs wait for, and the rest of a budget, change without a log entry."""
SHOWN = 50
"""Maximum results listed at the end."""


async def work_on(app: Penstock, task_id: str, tenant: str, *, as_json: bool) -> int:
    """Run the jobs of a task and show it until it is finished or stopped; returns the exit code."""
    signals, show = Signals(), show_for(as_json=as_json)
    try:
        async with working(app, KINDS):
            following = asyncio.create_task(_follow(app, task_id, tenant, show))
            try:
                await signals.wait_or(following)
            finally:
                await end_tasks([following])
    finally:
        show.close()
    interrupted = following.cancelled()
    if not interrupted:
        following.result()  # what went wrong
    view = await app.research.status(task_id, limit=MAX_LISTED, tenant=tenant)
    if as_json:
        print_event("summary", **_sums(view), interrupted=interrupted)
    elif interrupted:
        await _say_left(app, view)
    else:
        _summarise(view)
    code = ExitCode.OK if view.status is TaskStatus.COMPLETED else ExitCode.UNSUCCESSFUL
    code = ExitCode.INTERRUPTED if interrupted else code
    exit_after(EXIT_SECONDS, code)
    return code


async def _follow(app: Penstock, task_id: str, tenant: str, show: TaskDisplay) -> None:
    """Show the task until nothing more will change."""
    since: int | None = None

    async def look() -> TaskView:
        nonlocal since
        wait = 0.0 if since is None else LOOK_SECONDS
        view = await app.research.status(
            task_id, wait=wait, since=since, limit=MAX_LISTED, tenant=tenant
        )
        since = view.version
        return view

    async for view in looks(look):
        show.look(view)
        if view.next_poll is None:
            return
        if view.status is TaskStatus.PAUSED and not await _at_work(app, task_id, tenant):
            return


async def _at_work(app: Penstock, task_id: str, tenant: str) -> bool:
    """Whether a job is still finishing its run after the task was stopped."""
    running = [JobState.RUNNING]
    return bool(await app.jobs(states=running, log=log_of(task_id), tenant=tenant, limit=1))


def _sums(view: TaskView) -> dict[str, object]:
    return {
        "task_id": view.task_id,
        "status": view.status,
        "progress": view.progress,
        "results": view.total_results,
        "read": sum(work.page == "read" for work in view.results),
        "errors": len(view.errors),
    }


def _summarise(view: TaskView) -> None:
    if view.results:
        say()
        print_works(view.results[:SHOWN])
    if (more := view.total_results - SHOWN) > 0:
        say(f"     and {more:,} more: penstock tasks export {view.task_id}")
    print_troubles(view.errors)
    say()
    say(f"{view.status}  {view.progress} searches, results: {results(view)}")
    say(f"task {view.task_id}")
    if view.status is TaskStatus.PAUSED:
        note(f"stopped; to resume: penstock tasks resume {view.task_id} --watch")


async def _say_left(app: Penstock, view: TaskView) -> None:
    others = any(SEARCH in process.kinds for process in await app.processes())
    goes_on = "other workers continue it" if others else "no other worker continues it"
    note(f"interrupted with {view.progress} searches done; {goes_on}")
    note(f"to continue here: penstock tasks resume {view.task_id} --watch")
    note(f"to show it: penstock tasks show {view.task_id}")
