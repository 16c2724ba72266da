"""Actions on jobs from a page, and their results."""

from __future__ import annotations

from typing import Literal

from fastapi import Request

from penstock.ports.queue import JobFilter
from penstock.server.dashboard.pages import Flash
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem
from penstock.server.routes.jobs import change_jobs
from penstock.wire.jobs import ChangedJobs

Act = Literal["cancel", "redrive", "discard"]
DONE: dict[Act, str] = {"cancel": "cancelled", "redrive": "queued again", "discard": "discarded"}
VERBS: dict[Act, str] = {"cancel": "Cancel", "redrive": "Redrive", "discard": "Delete"}
DESTROYS: tuple[Act, ...] = ("cancel", "discard")
REASONS = 5
"""Maximum rejections that are listed one by one."""


def act_of(given: str) -> Act:
    if given not in DONE:
        raise Problem(422, "invalid", f"unknown action; there are: {', '.join(DONE)}")
    return given


async def change(request: Request, visit: CallerView, what: Act, where: JobFilter) -> Flash:
    if what == "redrive":
        await request.app.state.depth.check(visit.tenant)
    return _told(what, await change_jobs(request, visit, what, where))


def _told(what: Act, changed: ChangedJobs) -> Flash:
    count = changed.count
    said = f"{count:,} {'job' if count == 1 else 'jobs'} {DONE[what]}."
    if changed.refused:
        said += f" {len(changed.refused):,} skipped:"
        said += "".join(f"\n{one.id}: {one.why}" for one in changed.refused[:REASONS])
        if len(changed.refused) > REASONS:
            said += "\n..."
    return Flash("good" if count else "bad", said)
