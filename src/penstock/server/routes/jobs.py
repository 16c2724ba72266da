"""Jobs and dead letters."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.api.tenant_view import TenantView, What, dead_letters
from penstock.errors import WaitTimeout
from penstock.model.ids import new_id
from penstock.model.job import Job, JobState, Priority, PriorityName
from penstock.ports.queue import JobFilter
from penstock.server.actions import acting, named
from penstock.server.answer_json import at, for_caller, reply
from penstock.server.bodies import json_body, optional_body
from penstock.server.dependencies import Before, ReadAccess, WriteAccess, long_poll
from penstock.server.idempotency import digest, once
from penstock.server.long_lists import paged
from penstock.server.openapi import spec
from penstock.server.problems import Problem
from penstock.server.schemas import JobSelector, NewJobBody, RerunBody, SignalBody
from penstock.wire.jobs import ChangedJobs, DeadGroups, JobPage, JobView, SignalStored

routes = APIRouter(tags=["jobs"])

ALL = "jobs"
"""Subject of bulk actions."""

Limit = Annotated[int, Query(ge=1, le=1000)]
Moment = Annotated[float | None, Query(ge=0, le=2**33, description="Seconds since 1970.")]
Wait = Annotated[float, Query(ge=0, le=86400, description="Seconds to wait until it is finished.")]


@routes.post("/v1/jobs", **spec(JobView, 202, NewJobBody))
async def enqueue(request: Request, tenant_view: WriteAccess) -> Response:
    """Enqueue a job. Once this responds with 202 it is never lost. A key without the scope `read`
    gets only `id` and `state`."""
    new, body = await json_body(request, NewJobBody)

    async def make(made: str) -> Response:
        await request.app.state.depth.check(tenant_view.tenant)
        job = await tenant_view.enqueue(**dict(new), job_id=made)
        return reply(job, 202, location=at("jobs", job.id))

    stored = await once(request, make, digest(body), made=new_id())
    return for_caller(request, stored)


@routes.get("/v1/jobs", **spec(JobPage))
async def jobs(
    tenant_view: ReadAccess,
    state: Annotated[list[JobState] | None, Query()] = None,
    kind: Annotated[
        str | None, Query(max_length=200, description="A kind, or a pattern: `ingest.*`.")
    ] = None,
    log: Annotated[str | None, Query(max_length=512)] = None,
    parent: Annotated[str | None, Query(max_length=64)] = None,
    error_type: Annotated[str | None, Query(max_length=240)] = None,
    lane: Annotated[str | None, Query(max_length=240)] = None,
    priority: Annotated[PriorityName | None, Query()] = None,
    enqueued_after: Moment = None,
    enqueued_before: Moment = None,
    limit: Limit = 100,
    before: Before = None,
) -> Response:
    """List jobs, newest first; all given filters must match."""
    where = JobFilter(
        states=state,
        kind=kind,
        log=log,
        parent_id=parent,
        error_type=error_type,
        lane=lane,
        priority=None if priority is None else Priority.parse(priority),
        enqueued_after=enqueued_after,
        enqueued_before=enqueued_before,
    )
    return await _page(tenant_view, where, limit, before)


async def _page(
    tenant_view: TenantView, where: JobFilter, limit: int, before: str | None
) -> Response:
    return await paged("jobs", partial(tenant_view.jobs, where), lambda job: job.id, limit, before)


@routes.get("/v1/jobs/{job_id:name}", **spec(JobView))
async def job(request: Request, tenant_view: ReadAccess, job_id: str, wait: Wait = 0.0) -> Response:
    """Return a job; with `wait`, as soon as it is finished, or its state at the end of the wait."""
    found = await tenant_view.job(job_id)  # at once where there is none
    if wait and not found.state.finished:
        found = await _finished(request, tenant_view, found, wait)
    return reply(found)


async def _finished(request: Request, tenant_view: TenantView, found: Job, wait: float) -> Job:
    seconds = min(wait, request.app.state.config.wait_seconds)
    try:
        ended = await long_poll(request, tenant_view.wait(found.id, seconds))
    except WaitTimeout:
        ended = None
    return ended or await tenant_view.job(found.id)


@routes.post("/v1/jobs/{job_id:name}/cancel", **spec(JobView))
async def cancel(request: Request, tenant_view: WriteAccess, job_id: str) -> Response:
    """Cancel a job, and its children that are not detached; returns its state afterwards, which may
    have finished just before. A key without the scope `read` gets only `id` and `state`."""
    async with acting(request, "job.cancel", named(job_id)) as deed:
        await tenant_view.job(job_id)
        job = await tenant_view.cancel(job_id)
        deed.detail["state"] = str(job.state)
    return for_caller(request, reply(job))


@routes.post("/v1/jobs/cancel", **spec(ChangedJobs, 200, JobSelector))
async def cancel_many(request: Request, tenant_view: WriteAccess) -> Response:
    """Cancel all unfinished jobs that match; reports which `ids` could not be cancelled, and
    why."""
    return await asyncio.to_thread(
        reply, await change_jobs(request, tenant_view, "cancel", await _which(request))
    )


@routes.post("/v1/jobs/{job_id:name}/signals", **spec(SignalStored, 202, SignalBody))
async def signal(request: Request, tenant_view: WriteAccess, job_id: str) -> Response:
    """Send a job a signal, for which it waits with `ctx.wait_for` or will. 409 if it has ended."""
    sent, body = await json_body(request, SignalBody)

    async def make(made: str) -> Response:
        async with acting(request, "job.signal", named(job_id), name=sent.name) as deed:
            stored = await tenant_view.signal(job_id, sent.name, sent.payload, sent.key or made)
            deed.detail["stored"] = stored
        return reply(SignalStored(stored), 202)

    return await once(request, make, digest(body), made=new_id())


@routes.post("/v1/jobs/{job_id:name}/rerun", **spec(JobView, 202, RerunBody))
async def rerun(request: Request, tenant_view: WriteAccess, job_id: str) -> Response:
    """Run a job again, as a new one with the same kind, payload, lane and priority. The old one,
    its `rerun_of`, stays as it is. A key without the scope `read` gets only `id` and `state`."""
    given, body = await optional_body(request, RerunBody)

    async def make(made: str) -> Response:
        async with acting(request, "job.rerun", named(job_id)) as deed:
            await request.app.state.depth.check(tenant_view.tenant)
            new = await tenant_view.rerun(job_id, new_id=made, from_step=given.from_step)
            deed.detail["new"] = new.id
        return reply(new, 202, location=at("jobs", new.id))

    content = [digest(body)] if body else []
    stored = await once(request, make, *content, made=new_id())
    return for_caller(request, stored)


@routes.get("/v1/dead-letters", **spec(JobPage))
async def failed(
    tenant_view: ReadAccess,
    kind: Annotated[str | None, Query(max_length=200)] = None,
    error_type: Annotated[str | None, Query(max_length=240)] = None,
    log: Annotated[str | None, Query(max_length=512)] = None,
    limit: Limit = 100,
    before: Before = None,
) -> Response:
    """List failed jobs with their complete history, newest first."""
    return await _page(tenant_view, dead_letters(kind, error_type, log), limit, before)


@routes.get("/v1/dead-letters/groups", **spec(DeadGroups))
async def groups(tenant_view: ReadAccess) -> Response:
    """Group dead letters by kind and type of error, most frequent first; at most 1,000 groups."""
    return reply(DeadGroups(await tenant_view.dead_groups()))


@routes.post("/v1/dead-letters/redrive", **spec(ChangedJobs, 200, JobSelector))
async def redrive(request: Request, tenant_view: WriteAccess) -> Response:
    """Queue dead letters again, with fresh retries; they keep their history."""
    where = await _which(request)
    await request.app.state.depth.check(tenant_view.tenant)
    return await asyncio.to_thread(reply, await change_jobs(request, tenant_view, "redrive", where))


@routes.post("/v1/dead-letters/discard", **spec(ChangedJobs, 200, JobSelector))
async def discard(request: Request, tenant_view: WriteAccess) -> Response:
    """Delete dead letters permanently."""
    where = await _which(request)
    return await asyncio.to_thread(reply, await change_jobs(request, tenant_view, "discard", where))


async def change_jobs(
    request: Request, tenant_view: TenantView, what: What, where: JobFilter
) -> ChangedJobs:
    """Apply an action to all jobs that match, and record it."""
    without_ids = asdict(replace(where, ids=None))  # which copies all that is in it, one by one
    parts = {name: value for name, value in without_ids.items() if value is not None}
    if where.ids is not None:
        parts["ids"] = len(where.ids)
    async with acting(request, f"jobs.{what}", ALL, which=parts) as deed:
        changed = await tenant_view.change(what, where)
        deed.changed(changed)
    return changed


async def _which(request: Request) -> JobFilter:
    which, _ = await json_body(request, JobSelector)
    given = which.model_dump(exclude={"all"}, exclude_none=True)
    if bool(given) == which.all:
        raise Problem(
            422,
            "invalid",
            f"say which: {', '.join(JobSelector.model_fields)}: true (without the others)",
        )
    if "parent" in given:
        given["parent_id"] = given.pop("parent")
    if "priority" in given:
        given["priority"] = Priority.parse(given["priority"])
    return JobFilter(**given)
