"""How it goes: what is queued and running, by whom, and through which lanes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.model.job import JobState
from penstock.server.dashboard.live import live
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import page, part
from penstock.server.dashboard.session import Reading, Visit

routes = router()


@routes.get("/")
async def overview(request: Request, visit: Reading) -> Response:
    return page(request, "overview.html", title="Overview", **await _seen(visit))


@routes.get("/live/overview")
async def overview_live(request: Request, visit: Reading) -> Response:
    async def render() -> str:
        return part(request, "parts/overview.html", **await _seen(visit))

    return live(request, render)


async def _seen(visit: Visit) -> dict[str, Any]:
    counts = await visit.desk.app.counts()
    states: Counter[JobState] = Counter()
    for kind in counts:
        states.update(kind.states)
    return {"states": {state: states[state] for state in JobState}}
