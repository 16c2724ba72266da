"""Documents: list, filters, upload."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from starlette.responses import Response

from penstock.errors import ValidationError
from penstock.model.document import Document, DocumentState
from penstock.server.answer_json import reply
from penstock.server.bodies import require
from penstock.server.dashboard.filters import at_document
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import Refused, empty, router, told, typed, wants_json
from penstock.server.dashboard.pages import Flash, redirect
from penstock.server.dashboard.screens.document import shown_of
from penstock.server.dashboard.session import FORM, Form, Reading, Writing, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem
from penstock.server.schemas import TITLE_LIMIT
from penstock.server.uploads import FORM as FILES
from penstock.server.uploads import receive

routes = router()

PAGE = 50
ACCEPTED = {
    "PDF": "PDF",
    "DOCX": "Word",
    "PPTX": "PowerPoint",
    "XLSX": "Excel",
    "EPUB": "EPUB",
    "HTML": "HTML",
    "MAIL": "mail",
    "MARKDOWN": "Markdown",
    "CSV": "CSV",
    "TEXT": "plain text",
}
"""Accepted formats, by their names in `sniff`."""
PICTURES = {"PNG": "PNG", "JPEG": "JPEG", "TIFF": "TIFF"}
"""Further formats that are accepted if scans are read."""
FIELDS = ("what", "text", "url", "title", "id", "collection")


class DocumentSelection:
    """The documents that a URL selects."""

    def __init__(
        self,
        collection: Annotated[str, Query(max_length=240)] = "",
        state: Annotated[list[DocumentState] | None, Query()] = None,
        before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    ) -> None:
        self.collection = collection
        self.states = state or []
        self.before = before

    def query(self, before: int | None = None) -> str:
        given = [("collection", self.collection)] if self.collection else []
        given += [("state", str(state)) for state in self.states]
        given += [] if before is None else [("before", str(before))]
        return "?" + urlencode(given) if given else ""


JobSelector = Annotated[DocumentSelection, Depends()]


@routes.get("/documents")
@routes.get("/live/documents")
async def documents(request: Request, visit: Reading, wanted: JobSelector) -> Response:
    fields = empty(*FIELDS, collection=wanted.collection or "default")
    return await _screen(request, visit, wanted, fields, None)


def accepted(scans: str) -> list[str]:
    """List the accepted formats with this setting, for people."""
    return [*ACCEPTED.values(), *(PICTURES.values() if scans != "none" else ())]


async def _screen(
    request: Request,
    visit: CallerView,
    wanted: DocumentSelection,
    fields: dict[str, str],
    wrong: Problem | None,
) -> Response:
    state = request.app.state
    settings = state.penstock.config.documents
    limits = {
        "bytes": settings.document_bytes,
        "files": state.config.upload_files,
        "all": state.config.upload_bytes,
    }
    return await screen(
        request,
        "documents.html",
        "Documents",
        partial(_list, visit, wanted),
        wrong,
        typed=fields,
        limits=limits,
        accepted=accepted(settings.scans),
        states=list(DocumentState),
    )


async def _list(visit: CallerView, wanted: DocumentSelection) -> dict[str, Any]:
    found = await visit.documents.documents(
        tenant=visit.tenant,
        collection=wanted.collection or None,
        states=wanted.states or None,
        limit=PAGE + 1,
        before=wanted.before,
    )
    # Beside the event loop: each may have many metadata.
    shown = await asyncio.to_thread(lambda: [shown_of(one, visit) for one in found[:PAGE]])
    more = len(found) > PAGE
    return {
        "documents": shown,
        "wanted": wanted,
        "first": "/documents" + wanted.query() if wanted.before is not None else None,
        "following": "/documents" + wanted.query(shown[-1].generation) if more else None,
        "address": "/live/documents" + wanted.query(wanted.before),
    }


@routes.post("/documents")
async def add(request: Request, visit: Writing) -> Response:
    """Add the files of a form, or a text or URL. Scripts that send files one by one get JSON."""
    if require(request, FILES, FORM) == FORM:
        form = await read_form(request)
        try:
            await request.app.state.depth.check(visit.tenant)
            document = await _add_one(visit, form)
        except Refused as error:
            return await _screen(
                request, visit, DocumentSelection(), typed(form, *FIELDS), told(error)
            )
        return _accepted([document])
    kept = empty(*FIELDS, collection="default")
    try:
        async with receive(request, visit) as received:
            kept |= received.fields
            # What is left empty in a form is sent, too: also a file that nobody has chosen.
            fields = received.fields
            received.fields = {name: text for name, text in fields.items() if text.strip()}
            if not any(name or blob.size for name, blob in received.files):
                raise Problem(422, "invalid", "choose a file first")
            new = await received.said()
            await request.app.state.depth.check(visit.tenant)
            accepted = await received.accept(new)
    except Refused as error:
        if wants_json(request):
            raise
        return await _screen(request, visit, DocumentSelection(), kept, told(error))
    if wants_json(request):
        ref = accepted[0].ref
        root = getattr(request.state, "root", "")
        return reply({"address": root + at_document(ref.id, ref.collection)}, 202)
    return _accepted(accepted)


async def _add_one(visit: CallerView, form: Form) -> Document:
    documents, tenant = visit.documents, visit.tenant
    name, title = form.one("id") or None, form.one("title")[:TITLE_LIMIT]
    collection = form.one("collection") or "default"
    if form.one("what") == "url":
        url = form.one("url")
        return await documents.add_url(
            url, id=name, collection=collection, title=title, tenant=tenant
        )
    text = typed(form, "text")["text"].replace("\r\n", "\n")
    if not text.strip():
        raise ValidationError("the text is empty")
    return await documents.add(text, id=name, collection=collection, title=title, tenant=tenant)


def _accepted(accepted: list[Document]) -> Response:
    if len(accepted) == 1:
        ref = accepted[0].ref
        return redirect(at_document(ref.id, ref.collection), Flash("good", "Document accepted."))
    return redirect("/documents", Flash("good", f"{len(accepted)} documents accepted."))
