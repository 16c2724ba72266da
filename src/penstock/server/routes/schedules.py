"""Schedules that are made and changed while everything runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.model.ids import new_id
from penstock.model.schedule import ScheduleInfo
from penstock.server.actions import acting
from penstock.server.answer_json import at, for_caller, reply
from penstock.server.bodies import json_body
from penstock.server.dependencies import ReadAccess, WriteAccess
from penstock.server.idempotency import once
from penstock.server.openapi import spec
from penstock.server.schemas import ScheduleBody
from penstock.wire.jobs import JobView
from penstock.wire.schedules import SchedulePage

routes = APIRouter(tags=["schedules"])

After = Annotated[str | None, Query(max_length=200, description="`next` of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=1000)]
SCHEDULE = "schedule"
"""Subject of actions on schedules: their names may tell something."""


@routes.get("/v1/schedules", **spec(SchedulePage))
async def schedules(tenant_view: ReadAccess, limit: Limit = 100, before: After = None) -> Response:
    """List the tenant's schedules, by name. After the rows of the first page are those in the code,
    which belong to the tenant `default`: they have `source: code`, and are changed there."""
    found, following = await tenant_view.schedules(before, limit, code=True)
    return reply(SchedulePage(schedules=found, next=following))


@routes.get("/v1/schedules/{name:name}", **spec(ScheduleInfo))
async def schedule(tenant_view: ReadAccess, name: str) -> Response:
    """Get a schedule."""
    return reply(await tenant_view.schedule(name))


@routes.put("/v1/schedules/{name:name}", **spec(ScheduleInfo, 200, ScheduleBody))
async def set_schedule(request: Request, tenant_view: WriteAccess, name: str) -> Response:
    """Make a schedule, or change the one of this name: what is not given is as it is by default.
    One that is paused stays so. A key without the scope `read` gets only `name` and `paused`."""
    body, _ = await json_body(request, ScheduleBody)
    async with acting(request, "schedule.set", SCHEDULE, kind=body.kind):
        made = await tenant_view.set_schedule(name, **dict(body))
    return for_caller(request, reply(made))


@routes.delete("/v1/schedules/{name:name}", status_code=204, response_class=Response)
async def remove(request: Request, tenant_view: WriteAccess, name: str) -> Response:
    """Delete a schedule. The jobs that it has enqueued stay."""
    async with acting(request, "schedule.remove", SCHEDULE):
        await tenant_view.remove_schedule(name)
    return Response(status_code=204)


@routes.post("/v1/schedules/{name:name}/pause", **spec(ScheduleInfo))
async def pause(request: Request, tenant_view: WriteAccess, name: str) -> Response:
    """Let a schedule enqueue nothing until it is resumed. A key without the scope `read` gets only
    `name` and `paused`."""
    return await _change(request, "pause", lambda: tenant_view.pause_schedule(name))


@routes.post("/v1/schedules/{name:name}/resume", **spec(ScheduleInfo))
async def resume(request: Request, tenant_view: WriteAccess, name: str) -> Response:
    """Let a schedule go on with its next tick. A key without the scope `read` gets only `name` and
    `paused`."""
    return await _change(request, "resume", lambda: tenant_view.resume_schedule(name))


@routes.post("/v1/schedules/{name:name}/run", **spec(JobView, 202))
async def run(request: Request, tenant_view: WriteAccess, name: str) -> Response:
    """Enqueue a job of a schedule at once, besides its ticks. A key without the scope `read` gets
    only `id` and `state` of the job."""

    async def make(made: str) -> Response:
        async with acting(request, "schedule.run", SCHEDULE):
            await request.app.state.depth.check(tenant_view.tenant)
            job = await tenant_view.run_schedule(name, made)
        return reply(job, 202, location=at("jobs", job.id))

    return for_caller(request, await once(request, make, made=new_id()))


async def _change(
    request: Request, what: str, change: Callable[[], Awaitable[ScheduleInfo]]
) -> Response:
    async with acting(request, f"schedule.{what}", SCHEDULE):
        changed = await change()
    return for_caller(request, reply(changed))
