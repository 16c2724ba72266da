"""Schedules: rows, which can be paused, resumed and run now, and those in the code."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.server.actions import acting
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, redirect
from penstock.server.dashboard.session import Reading, Writing, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem
from penstock.server.routes.schedules import SCHEDULE, After

routes = router()

PATH = "/schedules"
SHOWN = 100
"""Schedules on a page."""


@routes.get(PATH)
@routes.get("/live/schedules")
async def schedules(request: Request, visit: Reading, before: After = None) -> Response:
    return await screen(request, "schedules.html", "Schedules", lambda: _page(visit, before))


async def _page(visit: CallerView, before: str | None) -> dict[str, Any]:
    found, following = await visit.schedules(before, SHOWN, code=True)
    return {"schedules": found, "following": following, "before": before}


@routes.post("/schedules/{name:name}")
async def change(request: Request, visit: Writing, name: str) -> Response:
    form = await read_form(request)
    match form.one("what"):
        case "pause":
            async with acting(request, "schedule.pause", SCHEDULE):
                await visit.pause_schedule(name)
            said = f"Schedule {name} paused: nothing is enqueued until it is resumed."
        case "resume":
            async with acting(request, "schedule.resume", SCHEDULE):
                await visit.resume_schedule(name)
            said = f"Schedule {name} resumed."
        case "run":
            async with acting(request, "schedule.run", SCHEDULE):
                await request.app.state.depth.check(visit.tenant)
                job = await visit.run_schedule(name)
            said = f"Job {job.id} enqueued."
        case _:
            raise Problem(422, "invalid", "unknown action; there are: pause, resume, run")
    return redirect(PATH, Flash("good", said))
