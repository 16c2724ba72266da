"""For operators: overview, lanes, periodic kinds, the last hour, and actions of callers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.adapters.sql.access import AccessStore
from penstock.api.overview import lane_view
from penstock.api.overview import overview as overview_of
from penstock.api.tenant_view import TenantView
from penstock.errors import LaneNotFound
from penstock.ports.lanes import LaneCommand
from penstock.server.actions import acting
from penstock.server.answer_json import reply
from penstock.server.bodies import json_body
from penstock.server.dependencies import AdminAccess, Before, ReadAccess
from penstock.server.openapi import spec
from penstock.server.problems import Problem
from penstock.server.queue_cache import QueueCache
from penstock.server.schemas import Limits
from penstock.wire.forecast import ForecastView, forecast_view
from penstock.wire.jobs import PeriodicKinds
from penstock.wire.operators import ActionPage, HistoryView, LaneList, LaneView, Overview

routes = APIRouter()


@routes.get("/v1/overview", tags=["overview"], **spec(Overview))
async def overview(request: Request, tenant_view: ReadAccess) -> Response:
    """Count the tenant's jobs by kind and state. For admins also: worker processes, lanes with
    problems, and what needs attention. At most a second old; some seconds on a large queue."""
    admin = tenant_view.may_control
    return reply(await seen_by(tenant_view, request.app.state.looks, admin=admin))


async def seen_by(tenant_view: TenantView, looks: QueueCache, *, admin: bool) -> Overview:
    """Build the overview for the API and the dashboard."""
    now, counts = tenant_view.app.queue.now(), await looks.counts(tenant_view.tenant)
    return overview_of(tenant_view.tenant, counts, now, await looks.outlook() if admin else None)


@routes.get("/v1/lanes", tags=["lanes"], **spec(LaneList))
async def lanes(tenant_view: ReadAccess) -> Response:
    """List the lanes in use: limits, requests in flight, waiting jobs, breaker, blocks. Lanes of
    hosts are for admins: their names reveal what other tenants fetch."""
    seen = await tenant_view.lanes(hosts=tenant_view.may_control)
    return reply(LaneList([lane_view(lane) for lane in seen]))


@routes.post("/v1/lanes/{name:name}/pause", tags=["lanes"], **spec(LaneView))
async def pause(request: Request, tenant_view: AdminAccess, name: str) -> Response:
    """Pause a lane: nothing starts in it until it is resumed."""
    return await _control(request, tenant_view, name, LaneCommand.PAUSE)


@routes.post("/v1/lanes/{name:name}/resume", tags=["lanes"], **spec(LaneView))
async def resume(request: Request, tenant_view: AdminAccess, name: str) -> Response:
    """Lift a pause, or a block by rejected credentials."""
    return await _control(request, tenant_view, name, LaneCommand.RESUME)


@routes.patch("/v1/lanes/{name:name}", tags=["lanes"], **spec(LaneView, 200, Limits))
async def limit(request: Request, tenant_view: AdminAccess, name: str) -> Response:
    """Override the limits of a lane, for all processes and until they are reset: null resets to the
    configured value. Limits that are not named stay as they are. A partial rate is completed from
    the configured one."""
    given, _ = await json_body(request, Limits)
    changes = given.model_dump(exclude_unset=True)
    if not changes:
        raise Problem(422, "invalid", f"give at least one of {', '.join(Limits.model_fields)}")
    async with acting(request, "lane.limit", name, limits=changes):
        lane = await tenant_view.app.limit_lane(name, changes)
    return reply(lane_view(lane))


async def _control(
    request: Request, tenant_view: TenantView, name: str, what: LaneCommand
) -> Response:
    async with acting(request, f"lane.{what.value}", name):
        await tenant_view.app.control_lane(name, what)
    for lane in await tenant_view.app.lane_infos():
        if lane.name == name:
            return reply(lane_view(lane))
    raise LaneNotFound(name)


@routes.get("/v1/forecast", tags=["overview"], **spec(ForecastView))
async def forecast(
    request: Request,
    tenant_view: ReadAccess,
    kind: Annotated[str | None, Query(max_length=240, description="Or a pattern.")] = None,
    changes: Annotated[
        list[str] | None,
        Query(alias="set", max_length=100, description="LANE.KEY=VALUE; may be repeated."),
    ] = None,
    workers: Annotated[int | None, Query(ge=1, le=10_000)] = None,
    processes: Annotated[int | None, Query(ge=1, le=10_000)] = None,
) -> Response:
    """Forecast when the tenant's backlog is done, what it costs, and what holds it up: the rules of
    lanes, run over the backlog of all tenants in virtual time. With `set`, as if lanes had other
    limits; with `workers` and `processes`, as if so many worked. Takes seconds on a large queue; a
    server makes one at a time."""
    looks: QueueCache = request.app.state.looks
    async with looks.forecasting:
        hosts = tenant_view.may_control
        told = await tenant_view.forecast(kind, changes or (), workers, processes, hosts=hosts)
    return reply(forecast_view(told))


@routes.get("/v1/periodic", tags=["jobs"], **spec(PeriodicKinds))
async def periodic(tenant_view: AdminAccess) -> Response:
    """List periodic kinds, as last reported by worker processes: schedule, last and next tick,
    unfinished jobs of earlier ticks."""
    return reply(PeriodicKinds(await tenant_view.app.periodic()))


@routes.get("/v1/history", tags=["overview"], **spec(HistoryView))
async def history(request: Request, tenant_view: AdminAccess) -> Response:
    """Return throughput and latency of the last hour, as far as this server has been up: a sample
    every five seconds, as columns. They cover all tenants, so they are for admins."""
    return reply(request.app.state.history.view())


@routes.get("/v1/actions", tags=["actions"], **spec(ActionPage))
async def actions(
    request: Request,
    tenant_view: AdminAccess,
    tenant: Annotated[str | None, Query(max_length=240)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Before = None,
) -> Response:
    """List actions, newest first, of all tenants or of one."""
    access: AccessStore = request.app.state.access
    found = await access.actions(limit, before, tenant)
    following = found[-1].id if len(found) == limit else None
    return reply(ActionPage(actions=found, next=following))
