"""Lanes: use, state, and for admins control."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.errors import LaneNotFound, ValidationError
from penstock.model.lane import LIMITS
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.server.actions import acting
from penstock.server.dashboard.filters import in_path
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, redirect
from penstock.server.dashboard.session import Controlling, Reading, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem

routes = router()

CHARTED = 180
"""Samples in the chart: a quarter of an hour."""
MAX_LANES = 300
"""Maximum lanes in the list: those with problems, then the busiest."""
WHOLE = ("requests_per_interval", "max_parallel", "requests_per_day")
LABELS = {
    "max_parallel": "Max parallel",
    "requests_per_interval": "Requests",
    "interval_seconds": "per (s)",
    "min_interval_seconds": "Min interval (s)",
    "requests_per_day": "Requests per day",
}
STEERED = {
    LaneCommand.PAUSE: "paused: nothing starts until it is resumed",
    LaneCommand.RESUME: "resumed",
    LaneCommand.RESET: "reset",
}


@routes.get("/lanes")
@routes.get("/live/lanes")
async def lanes(request: Request, visit: Reading) -> Response:
    return await screen(request, "lanes.html", "Lanes", lambda: _all(visit))


async def _all(visit: CallerView) -> dict[str, Any]:
    seen = await visit.lanes(hosts=visit.may_control)
    first = sorted(seen, key=lambda lane: (_calm(lane), -lane.in_flight - lane.waiting))[:MAX_LANES]
    chosen = {lane.name for lane in first}
    return {"lanes": [lane for lane in seen if lane.name in chosen], "more": len(seen) - len(first)}


def _calm(lane: LaneInfo) -> bool:
    return lane.blocked_why is None and lane.breaker == "closed"


@routes.get("/lanes/{name:name}")
@routes.get("/live/lanes/{name:name}")
async def lane(request: Request, visit: Reading, name: str) -> Response:
    return await screen(request, "lane.html", f"Lane {name}", lambda: _one(request, visit, name))


async def _one(request: Request, visit: CallerView, name: str) -> dict[str, Any]:
    seen = await visit.lanes(hosts=visit.may_control)
    for found in seen:
        if found.name == name:
            children = [other.name for other in seen if other.parent == name]
            history = request.app.state.history.of_lane(name, found.max_parallel, CHARTED)
            return {"lane": found, "labels": LABELS, "children": children, "history": history}
    raise LaneNotFound(name)


@routes.post("/lanes/{name:name}/control")
async def control(request: Request, visit: Controlling, name: str) -> Response:
    form = await read_form(request)
    try:
        what = LaneCommand(form.one("what"))
    except ValueError:
        raise Problem(422, "invalid", "unknown action; there are: pause, resume, reset") from None
    async with acting(request, f"lane.{what.value}", name):
        await visit.app.control_lane(name, what)
    return redirect(f"/lanes/{in_path(name)}", Flash("good", f"Lane {name} {STEERED[what]}."))


@routes.post("/lanes/{name:name}/limits")
async def limit(request: Request, visit: Controlling, name: str) -> Response:
    """Override the limits; an empty field keeps the configured value."""
    form, back = await read_form(request), f"/lanes/{in_path(name)}"
    try:
        wanted = {key: _figure(key, form.one(key)) for key in LIMITS}
        given = any(value is not None for value in wanted.values())
        async with acting(request, "lane.limit", name, limits=wanted):
            await visit.app.limit_lane(name, wanted if given else None)
    except ValidationError as error:
        return redirect(back, Flash("bad", f"Limits not changed: {error}."))
    said = "Limits updated." if given else "Limits reset to the configured values."
    return redirect(back, Flash("good", said))


def _figure(key: str, text: str) -> float | int | None:
    if not text:
        return None
    try:
        return int(text) if key in WHOLE else float(text)
    except ValueError:
        raise ValidationError(f"{LABELS[key]}: {text!r} is not a number") from None
