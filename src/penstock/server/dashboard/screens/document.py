"""One document: progress, history, indexed text, actions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from penstock.api.tenant_view import TenantView
from penstock.documents.jobs import log_of
from penstock.errors import ValidationError
from penstock.model.document import DEFAULT_COLLECTION, Document, StoredChunk
from penstock.model.redact import hidden
from penstock.ports.queue import JobFilter
from penstock.server.actions import acting
from penstock.server.dashboard.filters import CHUNKS, at_document
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, confirm, redirect
from penstock.server.dashboard.session import Form, Reading, Writing, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem

routes = router()

JOBS = 20
"""Number of recent jobs listed."""
HISTORY = 30
"""Number of recent log entries shown."""

Collection = Annotated[str, Query(min_length=1, max_length=240)]
From = Annotated[int, Query(alias="from", ge=0, le=2**31)]


class ChunkCache:
    """Cache of a document's chunks, invalidated when it is published again: a long one has
    thousands."""

    def __init__(self, tenant_view: TenantView, first: int) -> None:
        self._tenant_view = tenant_view
        self.first = first - first % CHUNKS
        self._known: tuple[Any, ...] | None = None
        self.all: list[StoredChunk] = []

    async def read(self, document: Document) -> None:
        now = (document.generation, document.state, document.finished_at, document.chunks)
        if now != self._known:
            ref = document.ref
            self.all = await self._tenant_view.documents.chunks(
                ref.id, collection=ref.collection, tenant=ref.tenant
            )
            self._known = now

    @property
    def shown(self) -> list[StoredChunk]:
        return self.all[self.first : self.first + CHUNKS]


@routes.get("/documents/{document_id:name}")
@routes.get("/live/documents/{document_id:name}")
async def document(
    request: Request,
    visit: Reading,
    document_id: str,
    collection: Collection = DEFAULT_COLLECTION,
    first: From = 0,
) -> Response:
    look = partial(_seen, visit, document_id, collection, ChunkCache(visit, first))
    return await screen(
        request, "document.html", lambda seen: f"Document {seen['document'].id}", look
    )


async def _seen(
    visit: CallerView, name: str, collection: str, chunks: ChunkCache
) -> dict[str, Any]:
    tenant_view = visit
    found = shown_of(await tenant_view.document(name, collection), tenant_view)
    await chunks.read(found)
    log = log_of(found.ref)
    newest = await tenant_view.version(log)
    return {
        "document": found,
        "here": at_document(found.ref.id, found.ref.collection),
        "jobs": await tenant_view.jobs(JobFilter(log=log), JOBS, None),
        "log": log,
        "changes": await tenant_view.changes(log, max(0, newest - HISTORY), HISTORY),
        "chunks": chunks,
        "per_page": CHUNKS,
    }


def shown_of(document: Document, tenant_view: TenantView) -> Document:
    """Prepare a document for display, with secrets hidden."""
    names = tenant_view.app.config.logging.hidden_names
    metadata, error = hidden(dict(document.metadata), names), document.error
    return replace(document, metadata=metadata, error=error and hidden(dict(error), names))


@routes.post("/documents/{document_id:name}/retry")
async def retry(request: Request, visit: Writing, document_id: str) -> Response:
    form = await read_form(request)
    collection = _collection(form)
    ref = (await visit.document(document_id, collection)).ref
    back = at_document(ref.id, ref.collection)
    try:
        async with acting(request, "document.retry", ref.id, collection=ref.collection):
            await request.app.state.depth.check(visit.tenant)
            await visit.documents.retry(ref.id, collection=ref.collection, tenant=ref.tenant)
    except ValidationError as error:
        return redirect(back, Flash("bad", f"{error}."))
    return redirect(back, Flash("good", "Retrying."))


@routes.post("/documents/{document_id:name}/delete")
async def delete(request: Request, visit: Writing, document_id: str) -> Response:
    form = await read_form(request)
    found = await visit.document(document_id, _collection(form))
    ref = found.ref
    if not form.confirmed:
        ask = f"Delete document {ref.id}, with its original and all its chunks?"
        return confirm(request, ask, form.fields, at_document(ref.id, ref.collection))
    async with acting(request, "document.delete", ref.id, collection=ref.collection):
        await visit.documents.delete(ref.id, collection=ref.collection, tenant=ref.tenant)
    return redirect("/documents", Flash("good", f"Document {ref.id} deleted."))


def _collection(form: Form) -> str:
    """Read the collection from the form: a confirmation page sends the form again, but not the
    query."""
    given = form.all("collection")
    if not given:
        raise Problem(422, "invalid", "say which collection")
    return given[0]
