"""Lanes: how much of each is in use, and what holds it up."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from penstock.server.dashboard.live import live
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import page, part
from penstock.server.dashboard.session import Reading

routes = router()


@routes.get("/lanes")
async def lanes(request: Request, visit: Reading) -> Response:
    seen = await visit.desk.lanes(hosts=visit.may_steer)
    return page(request, "lanes.html", title="Lanes", lanes=seen)


@routes.get("/live/lanes")
async def lanes_live(request: Request, visit: Reading) -> Response:
    async def render() -> str:
        seen = await visit.desk.lanes(hosts=visit.may_steer)
        return part(request, "parts/lanes.html", lanes=seen)

    return live(request, render)
