"""Tools of the app, and calls of them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.api.questions import answer_question, open_question
from penstock.api.tool_calls import ToolCalls, scope_of
from penstock.errors import WaitTimeout
from penstock.model.ids import new_id
from penstock.model.job import Job
from penstock.server.actions import acting, named
from penstock.server.answer_json import at, for_caller, reply
from penstock.server.bodies import json_body, require, value_of, whole
from penstock.server.dependencies import (
    CallerView,
    ReadAccess,
    ToolAccess,
    WriteAccess,
    check_scope,
    long_poll,
)
from penstock.server.idempotency import digest, once
from penstock.server.openapi import spec
from penstock.server.problems import Problem
from penstock.server.schemas import AnswerBody
from penstock.wire.calls import CallView, ToolLine, ToolList, call_view, tool_line
from penstock.wire.jobs import SignalStored

routes = APIRouter(tags=["tools"])

ARGUMENTS: dict[str, Any] = {
    "requestBody": {
        "required": False,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "description": "Arguments, as `parameters` of the tool describes them.",
                }
            }
        },
    }
}
Wait = Annotated[float, Query(ge=0, le=86400, description="Seconds to wait until it is finished.")]


def _calls(tenant_view: CallerView) -> ToolCalls:
    return ToolCalls(tenant_view, tenant_view.caller)


@routes.get("/v1/tools", **spec(ToolList))
async def tools(tenant_view: ReadAccess) -> Response:
    """List the tools of the app that the key may call, with the schemas of arguments and result."""
    return reply(ToolList([tool_line(tool) for tool in _calls(tenant_view).tools.values()]))


@routes.get("/v1/tools/{name}", **spec(ToolLine))
async def tool(tenant_view: ReadAccess, name: str) -> Response:
    """Return a tool, with the schemas of its arguments and result."""
    return reply(tool_line(_calls(tenant_view).tool(name)))


@routes.post("/v1/tools/{name}", **spec(CallView, 202), openapi_extra=ARGUMENTS)
async def call(request: Request, tenant_view: ToolAccess, name: str, wait: Wait = 0.0) -> Response:
    """Call a tool; the body is its arguments. The call is a job: once this responds it is never
    lost. With `wait` it returns as soon as the call is finished, or its state at the end of the
    wait; `GET /v1/calls/{id}?wait=` goes on waiting. Needs the scope `write`, or `read` for a tool
    that is `read_only`. A key without the scope `read` gets only `id` and `state`."""
    calls = _calls(tenant_view)
    wanted = calls.tool(name)
    check_scope(tenant_view.caller, scope_of(wanted))
    body = await whole(request)
    if body:
        require(request, "application/json")
    arguments = await asyncio.to_thread(_arguments, body)

    async def make(made: str) -> Response:
        await request.app.state.depth.check(tenant_view.tenant)
        job = await calls.begin(wanted, arguments, job_id=made)
        return reply(call_view(job), 202, location=at("calls", job.id))

    stored = await once(request, make, digest(body), made=new_id())
    if wait and stored.status_code == 202:
        stored = await _answer(request, tenant_view, stored, wait)
    return for_caller(request, stored)


async def _answer(
    request: Request, tenant_view: CallerView, stored: Response, wait: float
) -> Response:
    """The answer once the call is finished, or as it is at the end of the wait."""
    call_id = stored.headers["location"].rpartition("/")[2]
    job = await _over(request, tenant_view, await tenant_view.job(call_id), wait)
    status = 200 if job.state.finished else 202
    question = await open_question(tenant_view, job)
    return reply(call_view(job, question), status, location=at("calls", job.id))


@routes.get("/v1/calls/{call_id:name}", **spec(CallView))
async def result(
    request: Request, tenant_view: ReadAccess, call_id: str, wait: Wait = 0.0
) -> Response:
    """Return a call; with `wait`, as soon as it is finished, or its state at the end of the
    wait."""
    job = await _calls(tenant_view).call(call_id)
    job = await _over(request, tenant_view, job, wait)
    return reply(call_view(job, await open_question(tenant_view, job)))


@routes.post("/v1/calls/{call_id:name}/answer", **spec(SignalStored, 202, AnswerBody))
async def answer(request: Request, tenant_view: WriteAccess, call_id: str) -> Response:
    """Answer what a call asks a person (`question`), or decline it."""
    sent, _ = await json_body(request, AnswerBody)
    if sent.decline and sent.content:
        raise Problem(422, "invalid", "an answer has content, or declines")
    job = await _calls(tenant_view).call(call_id)
    async with acting(request, "call.answer", named(call_id)) as deed:
        content = None if sent.decline else sent.content
        stored = await answer_question(tenant_view, job, sent.question, content)
        deed.detail["stored"] = stored
    return reply(SignalStored(stored), 202)


@routes.post("/v1/calls/{call_id:name}/cancel", **spec(CallView))
async def cancel(request: Request, tenant_view: WriteAccess, call_id: str) -> Response:
    """Cancel a call; returns its state afterwards, which may have finished just before. A key
    without the scope `read` gets only `id` and `state`."""
    async with acting(request, "call.cancel", named(call_id)) as deed:
        job = await _calls(tenant_view).cancel(call_id)
        deed.detail["state"] = str(job.state)
    return for_caller(request, reply(call_view(job)))


async def _over(request: Request, tenant_view: CallerView, job: Job, wait: float) -> Job:
    if not wait or job.state.finished:
        return job
    seconds = min(wait, request.app.state.config.wait_seconds)
    try:
        ended = await long_poll(request, tenant_view.wait(job.id, seconds))
    except WaitTimeout:
        ended = None
    return ended or await tenant_view.job(job.id)


def _arguments(body: bytes) -> dict[str, Any]:
    given = value_of(body, "the body") if body.strip() else {}
    if not isinstance(given, dict):
        raise Problem(422, "invalid", "the body is an object: the arguments by name")
    return given
