"""The overview: attention, jobs by state, charts, processes, lanes."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.model.job import JobState
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.session import Reading
from penstock.server.dependencies import CallerView
from penstock.server.routes.operators import seen_by

routes = router()

CHARTED = 180
"""Samples in the chart: a quarter of an hour."""
GLANCE = 12
"""Number of lanes and kinds shown; their screens have all."""


@routes.get("/")
@routes.get("/live/overview")
async def overview(request: Request, visit: Reading) -> Response:
    return await screen(request, "overview.html", "Overview", lambda: _seen(request, visit))


async def _seen(request: Request, visit: CallerView) -> dict[str, Any]:
    state, admin = request.app.state, visit.may_control
    seen = await seen_by(visit, state.looks, admin=admin)
    lanes = await visit.lanes(hosts=admin)
    busy = sorted(lanes, key=lambda lane: (-lane.in_flight - lane.waiting, lane.name))
    unfinished = {
        one.kind: one.states[JobState.QUEUED] + one.states[JobState.RUNNING] for one in seen.kinds
    }
    kinds = sorted(seen.kinds, key=lambda one: (-unfinished[one.kind], one.kind))
    return {
        "seen": seen,
        "kinds": kinds[:GLANCE],
        "lanes": busy[:GLANCE],
        "more_lanes": max(0, len(busy) - GLANCE),
        "more_kinds": max(0, len(kinds) - GLANCE),
        "history": state.history.view(CHARTED) if admin else None,
    }
