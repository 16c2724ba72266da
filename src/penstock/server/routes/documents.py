"""Documents: upload, search, list, delete, retry."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.api.tenant_view import TenantView
from penstock.errors import WaitTimeout
from penstock.model.document import Document, DocumentState
from penstock.retrieval.search import SearchResult
from penstock.server.actions import acting
from penstock.server.answer_json import at, for_caller, reply
from penstock.server.bodies import json_body, media_type, parse, require, stream, whole
from penstock.server.dependencies import ReadAccess, WriteAccess, long_poll
from penstock.server.draining import while_connected
from penstock.server.idempotency import digest, once
from penstock.server.long_lists import paged, whole_list
from penstock.server.openapi import spec, takes
from penstock.server.problems import Problem
from penstock.server.schemas import NewDocument, Question, Upsert
from penstock.server.uploads import FIELDS, FORM, receive
from penstock.wire.documents import AddedDocuments, Chunks, DocumentPage, Upserted
from penstock.wire.view import fields_of

routes = APIRouter(tags=["documents"])

JSON = "application/json"
BYTES = "application/octet-stream"

FORM_SCHEMA = {
    "type": "object",
    "properties": {
        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
        **{name: {"type": "string"} for name in FIELDS},
    },
    "required": ["file"],
}

Collection = Annotated[str, Query(min_length=1, max_length=240)]
States = Annotated[list[DocumentState] | None, Query()]


@routes.post("/v1/documents", **spec(AddedDocuments, 202, NewDocument, **{FORM: FORM_SCHEMA}))
async def add(request: Request, tenant_view: WriteAccess) -> Response:
    """Accept documents: files of a form, or JSON with a text or URL. Once this responds with 202
    they are never lost; the same content under the same id changes nothing. If it failed before,
    the failed document is returned, unless `retry` is true."""
    if require(request, FORM, JSON) == FORM:
        return await _add_files(request, tenant_view)
    body = await whole(request)
    new = await parse(body, NewDocument)
    if (new.text is None) == (new.url is None):
        raise Problem(422, "invalid", "send either `text` or `url`")
    said = new.model_dump(include={"title", "collection", "metadata", "priority"})

    async def make(_made: str) -> Response:
        await request.app.state.depth.check(tenant_view.tenant)
        if new.url is not None:
            document = await tenant_view.documents.add_url(
                new.url, id=new.id, tenant=tenant_view.tenant, **said
            )
        else:
            assert new.text is not None
            document = await tenant_view.documents.add(
                new.text, id=new.id, tenant=tenant_view.tenant, origin="", retry=new.retry, **said
            )
        return _accepted([document])

    return await once(request, make, digest(body))


async def _add_files(request: Request, tenant_view: TenantView) -> Response:
    async with receive(request, tenant_view) as received:
        new, files = await received.said(), received.files
        seen = [[name, blob.key[:64]] for name, blob in files]

        async def make(_made: str) -> Response:
            await request.app.state.depth.check(tenant_view.tenant)
            return _accepted(await received.accept(new))

        said = sorted(received.fields.items())
        return await once(request, make, seen, said)


def _accepted(documents: list[Document]) -> Response:
    first = documents[0].ref
    where = at("documents", first.id) + _in(first.collection)
    return reply(AddedDocuments(documents), 202, location=where)


def _in(collection: str) -> str:
    return "" if collection == "default" else f"?collection={quote(collection, safe='')}"


@routes.get("/v1/documents", **spec(DocumentPage))
async def documents(
    tenant_view: ReadAccess,
    collection: Annotated[str | None, Query(min_length=1, max_length=240)] = None,
    state: States = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> Response:
    """List documents, newest first, including failed ones until they are deleted or retried."""

    async def fetch(limit: int, before: int | None) -> list[Document]:
        return await tenant_view.documents.documents(
            tenant=tenant_view.tenant,
            collection=collection,
            states=state,
            limit=limit,
            before=before,
        )

    return await paged("documents", fetch, lambda document: document.generation, limit, before)


@routes.get("/v1/documents/{document_id:name}", **spec(Document))
async def document(
    tenant_view: ReadAccess, document_id: str, collection: Collection = "default"
) -> Response:
    """Return a document: its progress, what was masked, and its error."""
    return reply(await tenant_view.document(document_id, collection))


@routes.get("/v1/documents/{document_id:name}/chunks", **spec(Chunks))
async def chunks(
    tenant_view: ReadAccess, document_id: str, collection: Collection = "default"
) -> Response:
    """Return the indexed chunks of a document, in order."""
    found = await tenant_view.documents.chunks(
        document_id, collection=collection, tenant=tenant_view.tenant
    )
    return await whole_list("chunks", found)


@routes.delete("/v1/documents/{document_id:name}", status_code=204, response_class=Response)
async def delete(
    request: Request, tenant_view: WriteAccess, document_id: str, collection: Collection = "default"
) -> Response:
    """Delete a document, in any state."""
    ref = tenant_view.documents.ref(document_id, collection=collection, tenant=tenant_view.tenant)
    async with acting(request, "document.delete", ref.id, collection=ref.collection):
        await tenant_view.documents.delete(
            document_id, collection=collection, tenant=tenant_view.tenant
        )
    return Response(status_code=204)


@routes.post("/v1/documents/{document_id:name}/retry", **spec(Document, 202))
async def retry(
    request: Request, tenant_view: WriteAccess, document_id: str, collection: Collection = "default"
) -> Response:
    """Retry a failed document from its original. Its error is kept until then. A key without the
    scope `read` gets only `id`, `collection` and `state`."""
    ref = tenant_view.documents.ref(document_id, collection=collection, tenant=tenant_view.tenant)

    async def make(_made: str) -> Response:
        async with acting(request, "document.retry", ref.id, collection=ref.collection):
            await request.app.state.depth.check(tenant_view.tenant)
            again = await tenant_view.documents.retry(
                document_id, collection=collection, tenant=tenant_view.tenant
            )
        where = at("documents", ref.id) + _in(ref.collection)
        return reply(again, 202, location=where)

    again = await once(request, make)
    return for_caller(request, again)


@routes.put(
    "/v1/index/{document_id:name}",
    responses={200: {"model": Upserted}, 202: {"model": Upserted}},
    openapi_extra=takes(Upsert, **{BYTES: {"type": "string", "format": "binary"}}),
)
async def upsert(
    request: Request,
    tenant_view: WriteAccess,
    document_id: str,
    collection: Collection = "default",
    retry: Annotated[
        bool, Query(description="Retry if the same content has failed before.")
    ] = False,
) -> Response:
    """Add a document, and wait until it is searchable (200). Takes JSON with a `text`, or the file
    itself with any other content type. After the server's deadline it responds with 202 and the
    job, which continues; so does it if the caller hangs up."""
    state = request.app.state
    await state.depth.check(tenant_view.tenant)
    where: dict[str, Any] = {
        "id": document_id,
        "collection": collection,
        "tenant": tenant_view.tenant,
        "retry": retry,
    }
    if media_type(request) == JSON:
        new = await parse(await whole(request), Upsert)
        accepted = await tenant_view.documents.add(
            new.text, title=new.title, metadata=new.metadata, priority="high", **where
        )
    else:
        body = stream(request, state.config.upload_bytes)
        accepted = await tenant_view.documents.add(body, priority="high", **where)
    if accepted.state is DocumentState.FAILED:
        raise _failed(accepted, accepted.message)
    return await _searchable(request, tenant_view, accepted)


def _failed(document: Document, *also: str) -> Problem:
    said = str((document.error or {}).get("message") or document.message)
    return Problem(422, "document-failed", "; ".join([said, *also]), document=document)


async def _searchable(request: Request, tenant_view: TenantView, accepted: Document) -> Response:
    state, ref = request.app.state, accepted.ref
    try:
        done = await long_poll(
            request,
            tenant_view.documents.wait(
                ref.id,
                collection=ref.collection,
                tenant=ref.tenant,
                timeout=state.config.deadline_seconds,
            ),
        )
    except WaitTimeout:
        done = None
    if done is None:
        document = await tenant_view.document(ref.id, ref.collection)
        job = await tenant_view.job_of(document)
        body = Upserted(document, None if job is None else job.id)
        where = at("documents", ref.id) + _in(ref.collection)
        return reply(body, 202, location=where if job is None else at("jobs", job.id))
    if done.state is DocumentState.FAILED:
        raise _failed(done)
    return reply(Upserted(done, None))


@routes.post("/v1/search", **spec(SearchResult, 200, Question))
async def search(request: Request, tenant_view: ReadAccess) -> Response:
    """Search for the passages that best answer a question. While the embedder is unreachable,
    `mode` is `text`, and `note` says why."""
    asked, _ = await json_body(request, Question)
    wanted = asked.model_dump(exclude={"explain"})
    searching = tenant_view.documents.search(**wanted, tenant=tenant_view.tenant)
    result = await while_connected(request.receive, searching)
    if asked.explain:
        return reply(result)
    passages = [fields_of(one) for one in result.passages]
    for passage in passages:
        del passage["why"]
    return reply({**fields_of(result), "passages": passages})
