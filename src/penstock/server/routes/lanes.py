"""Lanes: shared by all tenants, visible to all, controlled by admins."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.api.overview import lane_view
from penstock.api.tenant_view import TenantView
from penstock.errors import LaneNotFound
from penstock.model.access import KeyScope
from penstock.server.actions import acting
from penstock.server.answer_json import reply
from penstock.server.bodies import json_body
from penstock.server.callers import Admin, Reader
from penstock.server.dependencies import AdminAccess, ReadAccess
from penstock.server.openapi import takes
from penstock.server.problems import Problem
from penstock.server.schemas import Limits
from penstock.wire.operators import LaneList, LaneView

routes = APIRouter(tags=["lanes"])


@routes.get("/v1/lanes", responses={200: {"model": LaneList}})
async def lanes(tenant_view: ReadAccess, caller: Reader) -> Response:
    """The lanes in use: limits, requests in flight, jobs waiting, breaker, blocks. Those of hosts
    are for admins: their names tell what other tenants fetch."""
    seen = await tenant_view.lanes(hosts=KeyScope.ADMIN in caller.scopes)
    return reply(LaneList([lane_view(lane) for lane in seen]))


@routes.post("/v1/lanes/{name:name}/pause", responses={200: {"model": LaneView}})
async def pause(request: Request, tenant_view: AdminAccess, caller: Admin, name: str) -> Response:
    """Let nothing start in a lane until it is resumed."""
    async with acting(request, caller, "lane.pause", name):
        await tenant_view.app.control_lane(name, "pause")
    return await _lane(tenant_view, name)


@routes.post("/v1/lanes/{name:name}/resume", responses={200: {"model": LaneView}})
async def resume(request: Request, tenant_view: AdminAccess, caller: Admin, name: str) -> Response:
    """Lift a pause, or a block by refused credentials."""
    async with acting(request, caller, "lane.resume", name):
        await tenant_view.app.control_lane(name, "resume")
    return await _lane(tenant_view, name)


@routes.patch(
    "/v1/lanes/{name:name}", responses={200: {"model": LaneView}}, openapi_extra=takes(Limits)
)
async def limit(request: Request, tenant_view: AdminAccess, caller: Admin, name: str) -> Response:
    """Give a lane other limits, for all processes and until they are taken back: null stands for
    what is configured. What is not named stays as it is. Part of a rate is completed from what is
    configured."""
    given, _ = await json_body(request, Limits)
    changes = given.model_dump(exclude_unset=True)
    if not changes:
        raise Problem(422, "invalid", f"give at least one of {', '.join(Limits.model_fields)}")
    async with acting(request, caller, "lane.limit", name, limits=changes):
        lane = await tenant_view.app.limit_lane(name, changes)
    return reply(lane_view(lane))


async def _lane(tenant_view: TenantView, name: str) -> Response:
    for lane in await tenant_view.app.lane_infos():
        if lane.name == name:
            return reply(lane_view(lane))
    raise LaneNotFound(name)
