"""Streams of changes: of one document or research task, and of everything a tenant owns."""

from __future__ import annotations

import base64
import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.api.tenant_view import TenantView
from penstock.documents.jobs import log_of as document_log
from penstock.errors import DocumentNotFound, JobNotFound, TooSlow, ValidationError
from penstock.model.change import Change
from penstock.model.document import Document, DocumentState
from penstock.model.research import TaskStatus
from penstock.ports.queue import FEED_SECONDS, FeedEntry
from penstock.research.job_ids import SEARCH
from penstock.research.job_ids import log_of as task_log
from penstock.server.dependencies import ReadAccess
from penstock.server.events import END, Resume, described, event, stream, version_of
from penstock.server.routes.documents import Collection
from penstock.wire.tasks import TaskView

routes = APIRouter(tags=["events"])

PAGE = 500
LOOK_SECONDS = 5.0
"""Polling interval of a stream: not every change of a document is in its log."""
SETTLE_SECONDS = 5.0
"""How long to wait for the end of the last job once a document or task is finished."""
FINISHED = (TaskStatus.COMPLETED, TaskStatus.FAILED)
SNAPSHOT = 100
"""Documents in the snapshot of a tenant."""
TOLD = 2000
"""Serialized events that are cached for readers that have not received them yet."""
STREAM = described("change", "reset", "done")
JOB_STREAM = described("emitted", "step", "receipt", "progress", "end")


class StreamState(NamedTuple):
    """The state of a stream's subject."""

    what: Literal["document", "task"]
    thing: Document | TaskView
    finished: bool

    def as_dict(self) -> dict[str, Any]:
        return {self.what: self.thing}


class Subject(NamedTuple):
    """The subject of a stream."""

    log: str
    look: Callable[[], Awaitable[StreamState | None]]
    """Returns its state; None if it is gone."""
    ended_by: str | None = None
    """Kind of the jobs that may finish it; None: any. Its state is read only when one of them has
    ended: for a large task that takes a while, and it has many small changes."""

    def may_end(self, change: Change) -> bool:
        if self.ended_by is None or not change.job_id:
            return True
        return change.data.get("kind") == self.ended_by and change.what not in (
            "queued",
            "progress",
        )


@routes.get("/v1/documents/{document_id:name}/events", responses=STREAM, response_class=Response)
async def document_events(
    request: Request,
    tenant_view: ReadAccess,
    document_id: str,
    resume: Resume,
    collection: Collection = "default",
) -> Response:
    """Stream the changes of a document, until it is searchable or failed: then `done` with the
    document, once. 204 if the reader has seen that."""
    ref = (await tenant_view.document(document_id, collection)).ref  # 404 before the stream begins

    async def look() -> StreamState | None:
        try:
            document = await tenant_view.document(ref.id, ref.collection)
        except DocumentNotFound:
            return None
        return StreamState("document", document, document.state is not DocumentState.PROCESSING)

    return await _follow(request, tenant_view, Subject(document_log(ref), look), resume)


@routes.get("/v1/tasks/{task_id:name}/events", responses=STREAM, response_class=Response)
async def task_events(
    request: Request, tenant_view: ReadAccess, task_id: str, resume: Resume
) -> Response:
    """Stream the changes of a research task, until no search is left: then `done` with the task,
    once. 204 if the reader has seen that. The stream of a paused task stays open, since it may be
    resumed."""

    async def look() -> StreamState:
        task = await tenant_view.task(task_id)
        return StreamState("task", task, task.status in FINISHED)

    await look()  # 404 before the stream begins
    return await _follow(request, tenant_view, Subject(task_log(task_id), look, SEARCH), resume)


async def _follow(
    request: Request, tenant_view: TenantView, subject: Subject, resume: str | None
) -> Response:
    since, ended = version_of(resume)
    if ended and since == await tenant_view.version(subject.log):
        seen = await subject.look()
        if seen is not None and seen.finished:
            return Response(status_code=204)
    return stream(request, _of_log(tenant_view, subject, since))


async def _of_log(
    tenant_view: TenantView, subject: Subject, since: int | None
) -> AsyncGenerator[bytes]:
    log, due, give_up = subject.log, True, 0.0
    seen: StreamState | None = None
    while True:
        newest = await tenant_view.version(log)  # before the look: what comes later wakes us
        if looked := due:
            seen = await subject.look()
        if seen is None:
            yield event("done", {"deleted": True}, f"{newest}{END}")
            return
        if since is None or since > newest:  # of a log that is gone by now
            since = newest
            yield event("reset", seen.as_dict(), str(newest))
        while since < newest:
            changes = await tenant_view.changes(log, since, PAGE)
            if not changes:  # they are gone, and only their number is left
                since = newest
            for change in changes:
                since, due = change.version, due or subject.may_end(change)
                yield event("change", change, str(since))
        if due and not looked:
            continue
        if not seen.finished:
            give_up = 0.0
            due = not await tenant_view.changes(log, since, 1, wait=LOOK_SECONDS)
            continue
        # Its job is settled a moment after it is finished, and that is a change too.
        give_up = give_up or time.monotonic() + SETTLE_SECONDS
        patient = time.monotonic() <= give_up
        if patient and await tenant_view.at_work(log):
            await tenant_view.changes(log, since, 1, wait=0.5)
        elif not patient or await tenant_view.version(log) == since:
            yield event("done", seen.as_dict(), f"{since}{END}")
            return


@routes.get("/v1/jobs/{job_id:name}/events", responses=JOB_STREAM, response_class=Response)
async def job_events(
    request: Request, tenant_view: ReadAccess, job_id: str, resume: Resume
) -> Response:
    """Stream the events of a job, from its first: what it emits, its steps as they are recorded,
    its progress, and `end`, once. 204 if the reader has seen that."""
    found = await tenant_view.job(job_id)  # 404 before the stream begins
    after = version_of(resume)[0] or 0
    if await tenant_view.told(found, after):
        return Response(status_code=204)
    return stream(request, _of_job(tenant_view, job_id, after))


async def _of_job(tenant_view: TenantView, job_id: str, after: int) -> AsyncGenerator[bytes]:
    try:
        async for told in tenant_view.follow(job_id, after):
            yield event(told.kind, told, str(told.position))
    except JobNotFound:
        yield event("bye", {"why": "the job was deleted"})


@routes.get("/v1/events", responses={200: STREAM[200]}, response_class=Response)
async def tenant_events(request: Request, tenant_view: ReadAccess, resume: Resume) -> Response:
    """Stream every change of everything the tenant owns, from now on or after an id. It never
    ends."""
    end = await tenant_view.app.queue.feed_end(tenant_view.tenant)  # 503 before the stream begins
    return stream(request, _of_tenant(request, tenant_view, resume, end))


async def _of_tenant(
    request: Request, tenant_view: TenantView, resume: str | None, end: str
) -> AsyncGenerator[bytes]:
    after = None if resume is None else _position(resume)
    while True:
        if after is None:
            after = end
            if resume is not None:
                # From the end that was noted first: what happens meanwhile is told twice.
                newest = await tenant_view.documents.documents(
                    tenant=tenant_view.tenant, limit=SNAPSHOT
                )
                snapshot = {"documents": newest}
                yield event("reset", snapshot, _id(after, tenant_view.app.queue.now()))
        try:
            async with tenant_view.app.feeds.follow(tenant_view.tenant, after) as batches:
                told: EventCache = request.app.state.told
                async for batch in batches:
                    yield b"".join([told.event(tenant_view.tenant, fed) for fed in batch])
            return
        except ValidationError:  # not a position of this queue
            after, resume = None, resume or ""
        except TooSlow:
            return


class EventCache:
    """Cache of feed events, each serialized once for all readers."""

    def __init__(self) -> None:
        self._events: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def event(self, tenant: str, fed: FeedEntry) -> bytes:
        known = self._events.get((tenant, fed.position))
        if known is None:
            known = event("change", fed.change, _id(fed.position, fed.change.at))
            self._events[tenant, fed.position] = known
            if len(self._events) > TOLD:
                self._events.popitem(last=False)
        return known


def _id(position: str, at: float) -> str:
    return base64.urlsafe_b64encode(json.dumps([at, position]).encode()).decode()


def _position(given: str) -> str | None:
    """Parse the position in an id; None if it is older than what is kept, or not one of ours."""
    try:
        at, position = json.loads(base64.urlsafe_b64decode(given.encode()))
        fresh = float(at) > time.time() - FEED_SECONDS
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return str(position) if fresh else None
