"""Answers: ask, wait, stream, cancel. If the caller hangs up, the answer is written all the same,
and can be read by its id."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.answers.completion import DONE, ERROR, TERMINAL, ending, told
from penstock.answers.service import EVENTS, MAX_LISTED
from penstock.answers.views import AnswerView
from penstock.api.tenant_view import TenantView
from penstock.errors import WaitTimeout
from penstock.model.answer import Answer, AnswerState
from penstock.research.job_ids import new_task_id
from penstock.server.actions import acting, named
from penstock.server.answer_json import at, for_caller, reply
from penstock.server.bodies import json_body
from penstock.server.dependencies import (
    AskAccess,
    Before,
    ReadAccess,
    Since,
    WaitForChange,
    WriteAccess,
    long_poll,
    poll_change,
)
from penstock.server.events import END, Resume, check_room, described, event, stream, version_of
from penstock.server.idempotency import REPLAYED, digest, once
from penstock.server.openapi import spec, takes
from penstock.server.schemas import Ask
from penstock.wire.answers import AnswerAtVersion, AnswerPage, line_of

routes = APIRouter(tags=["answers"])

SSE = "text/event-stream"
STREAM = described("asked", *EVENTS, "reset")
LOOK_SECONDS = 10.0
"""Polling interval of a stream that gets no events, to see whether the answer is finished."""
SETTLE_SECONDS = 5.0
"""How long to wait for the last event of a finished answer in its log."""


@routes.post(
    "/v1/answers",
    status_code=201,
    responses={201: {"model": AnswerAtVersion}, 200: STREAM[200]},
    openapi_extra=takes(Ask),
)
async def ask(
    request: Request,
    tenant_view: AskAccess,
    wait: Annotated[
        float,
        Query(ge=0, le=86400, description="Seconds to wait until it is finished. Not for streams."),
    ] = 60.0,
) -> Response:
    """Ask a question. Once this responds, the answer will be written, even if the caller hangs up.
    201 when it is finished, or with its state after `wait`. With `Accept: text/event-stream` the
    response is 200, and a stream of its events, which /v1/answers/{answer_id}/events continues."""
    new, body = await json_body(request, Ask)
    streamed = SSE in request.headers.get("accept", "").lower()
    if streamed:
        check_room(request)  # nothing is made for who cannot be told

    async def make(made: str) -> Response:
        await request.app.state.depth.check(tenant_view.tenant)
        await tenant_view.answers.ask(**new.model_dump(), tenant=tenant_view.tenant, answer_id=made)
        return reply({"answer_id": made}, 201)

    # Only the asking is done once: who asks again gets the answer as it stands now.
    asked = await once(request, make, digest(body), made=new_task_id())
    made = json.loads(bytes(asked.body))["answer_id"]
    headers = {"Location": at("answers", made)}
    headers |= {name: asked.headers[name] for name in REPLAYED if name in asked.headers}
    if streamed:
        return stream(request, _events(tenant_view, made, None), headers)
    seconds = min(wait, request.app.state.config.deadline_seconds)
    view = await _over(request, tenant_view, made, seconds)
    return reply(view, 201, **headers)


async def _over(
    request: Request, tenant_view: TenantView, answer_id: str, seconds: float
) -> AnswerView:
    """Wait until the answer is finished, or the wait is over; return its state."""
    if seconds:
        waiting = tenant_view.answers.wait(answer_id, timeout=seconds, tenant=tenant_view.tenant)
        with suppress(WaitTimeout):
            await long_poll(request, waiting)
    return await tenant_view.answer(answer_id)


@routes.get("/v1/answers", **spec(AnswerPage))
async def answers(
    tenant_view: ReadAccess,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
    before: Before = None,
) -> Response:
    """List answers, newest first."""
    found = await tenant_view.answers.answers(tenant=tenant_view.tenant, limit=limit, before=before)
    following = found[-1].id if len(found) == limit else None
    return reply(AnswerPage(answers=[line_of(one) for one in found], next=following))


@routes.get("/v1/answers/{answer_id:name}", **spec(AnswerAtVersion))
async def answer(
    request: Request,
    tenant_view: ReadAccess,
    answer_id: str,
    wait: WaitForChange = 0.0,
    since: Since = None,
) -> Response:
    """Return an answer; with `wait`, as soon as it has changed, or its state at the end of the
    wait."""
    look = partial(tenant_view.answer, answer_id)
    return reply(await poll_change(request, wait, look, since))


@routes.post("/v1/answers/{answer_id:name}/cancel", **spec(AnswerAtVersion))
async def cancel(request: Request, tenant_view: WriteAccess, answer_id: str) -> Response:
    """Cancel a question; returns the answer's state afterwards, which may have finished just
    before. A key without the scope `read` gets only `answer_id` and `state`."""
    async with acting(request, "answer.cancel", named(answer_id)):
        await tenant_view.answers.cancel(answer_id, tenant=tenant_view.tenant)
    return for_caller(request, reply(await tenant_view.answer(answer_id)))


@routes.get("/v1/answers/{answer_id:name}/events", responses=STREAM, response_class=Response)
async def answer_events(
    request: Request, tenant_view: ReadAccess, answer_id: str, resume: Resume
) -> Response:
    """Stream the events of an answer, from the question to its end: `done` or `error`, once. 204 if
    the reader has seen that."""
    view = await tenant_view.answer(answer_id)  # 404 before the stream begins
    if version_of(resume)[1] and view.answer.over:  # its end was seen
        return Response(status_code=204)
    return stream(request, _events(tenant_view, answer_id, resume))


async def _events(
    tenant_view: TenantView, answer_id: str, resume: str | None
) -> AsyncGenerator[bytes]:
    """Iterate over the events after an id, up to the end."""
    view, (since, _) = await tenant_view.answer(answer_id), version_of(resume)
    answer = view.answer
    if since is None or since > view.version:  # of a log that is gone by now: from the beginning
        since = 0
        yield event("reset", view, "0")
    elif resume is None:
        yield event("asked", line_of(answer), "0")
    while True:
        wait = _patience(tenant_view, answer)
        told_now = await tenant_view.answers.events(
            answer_id, since, wait=wait, tenant=tenant_view.tenant
        )
        for one in told_now:
            since, over = one.version, one.what in TERMINAL
            yield event(one.what, one.data, f"{since}{END if over else ''}")
            if over:
                return
        if told_now:
            continue
        if answer.over:  # its log is gone, or nobody has told its end yet
            if answer.state is AnswerState.COMPLETED:
                yield event("answer", told(answer), str(since))
            name = DONE if answer.state is AnswerState.COMPLETED else ERROR
            yield event(name, ending(answer), f"{since}{END}")
            return
        answer = (await tenant_view.answer(answer_id)).answer


def _patience(tenant_view: TenantView, answer: Answer) -> float:
    """How long to wait for events before checking the state. The last event is logged a moment
    after the answer is finished."""
    if answer.finished_at is None:
        return LOOK_SECONDS
    return max(0.0, answer.finished_at + SETTLE_SECONDS - tenant_view.app.queue.now())
