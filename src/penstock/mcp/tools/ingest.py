"""The tool that adds a document."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field, RootModel

from penstock.documents.jobs import log_of
from penstock.documents.service import LOOK_SECONDS
from penstock.errors import TaskNotFound
from penstock.mcp.errors import CallRefused
from penstock.mcp.results import ToolResult
from penstock.mcp.tasks import TaskWork, WorkStatus, changed_at
from penstock.mcp.tool_view import McpServices, ToolView, WriteAccess
from penstock.mcp.tools.define import define
from penstock.mcp.tools.documents import URL_LIMIT, Name
from penstock.mcp.waiting import CallProgress, Wait
from penstock.model.document import DEFAULT_COLLECTION, Document, DocumentState, DocumentSummary
from penstock.model.job import JobState
from penstock.wire.view import made

TEXT_LIMIT = 1_000_000
TITLE_LIMIT = 1000


@dataclass(slots=True, frozen=True)
class Ingested(DocumentSummary, ToolResult):
    """A stored document. Pass its `id` to get_page as `document`."""

    def in_words(self) -> str:
        name = f"document {self.id!r} in collection {self.collection!r}"
        match self.state:
            case "completed":
                return f"{name} is searchable: {self.chunks} passages."
            case "failed":
                return f"{name} could not be read: {(self.error or {}).get('message', 'unknown')}"
            case _:
                return (
                    f"{name} is stored and will be worked on ({self.phase}, {self.progress:.0%}). "
                    "search_documents finds it once it is ready."
                )


async def ingest(
    tenant_view: WriteAccess,
    context: Context[McpServices, Any],
    url: Annotated[
        str | None,
        Field(max_length=URL_LIMIT, description="An http(s) URL of a page or file; or `text`."),
    ] = None,
    text: Annotated[
        str | None, Field(max_length=TEXT_LIMIT, description="The text itself; or `url`.")
    ] = None,
    title: Annotated[str, Field(max_length=TITLE_LIMIT)] = "",
    collection: Annotated[Name, Field(description="Target collection.")] = DEFAULT_COLLECTION,
    wait: Wait = 0,
) -> Annotated[CallToolResult, RootModel[Ingested]]:
    """Store a document so that search_documents finds it: the page or file at a public `url`, or a
    `text`. Personal data is masked before anything is stored. It returns at once, or with `wait` as
    soon as the document is searchable or has failed. The same text again changes nothing; the same
    URL is fetched again. Research tasks read the pages they find automatically."""
    if (url is None) == (text is None):
        raise CallRefused("invalid", "give either `url` or `text`")
    await tenant_view.admit()
    said: dict[str, Any] = {"title": title, "collection": collection, "tenant": tenant_view.tenant}
    if url is not None:
        document = await tenant_view.documents.add_url(url, **said)
    else:
        document = await tenant_view.documents.add(text or "", **said)
    document = await _ready(tenant_view, context, document, tenant_view.patience(wait))
    if tenant_view.tasks and wait > 0 and document.state is DocumentState.PROCESSING:
        return made(Ingested, document).result(DOCUMENT.task_id(DocumentWork.name_of(document)))
    return made(Ingested, document).result()


async def _ready(
    tenant_view: ToolView, context: Context[McpServices, Any], document: Document, seconds: float
) -> Document:
    """Wait until the document is ready, for `seconds`, or until the server is told to stop; returns
    it as it is then."""
    ref, progress = document.ref, CallProgress(context, seconds)
    log = log_of(ref)
    while document.state is DocumentState.PROCESSING and progress.left:
        # The log first: what changes after that wakes us.
        seen = await tenant_view.version(log)
        document = await tenant_view.document(ref.id, ref.collection)
        if document.state is DocumentState.PROCESSING:
            await progress.tell(_phase(document))
            wait = tenant_view.changes(log, seen, 1, wait=min(LOOK_SECONDS, progress.pause))
            if await tenant_view.unless_stopping(wait) is None:
                return await tenant_view.document(ref.id, ref.collection)
    return document


def _phase(document: Document) -> str:
    return f"{document.phase}, {document.progress:.0%}"


class DocumentWork(TaskWork):
    """An accepted document, as an MCP task. Its names may contain anything, so they are encoded."""

    kind = "document"
    tools = ("ingest",)

    @staticmethod
    def name_of(document: Document) -> str:
        named = json.dumps([document.collection, document.id, document.generation])
        return base64.urlsafe_b64encode(named.encode()).decode().rstrip("=")

    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus:
        document, newer = await self._find(tenant_view, name)
        over = newer or document.state is not DocumentState.PROCESSING
        cancelled = False
        if not newer and document.state is not DocumentState.COMPLETED:
            job = await tenant_view.job_of(document)
            cancelled = job is not None and job.state is JobState.CANCELLED
        log = log_of(document.ref)
        return WorkStatus(
            "cancelled" if cancelled else "completed" if over else "working",
            _phase(document),
            document.accepted_at,
            await changed_at(
                tenant_view, log, await tenant_view.version(log), document.accepted_at
            ),
            result=made(Ingested, document).result() if over and not cancelled else None,
        )

    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        document, newer = await self._find(tenant_view, name)
        if not newer and document.state is DocumentState.PROCESSING:
            await tenant_view.cancel_document(document)

    async def _find(self, tenant_view: ToolView, name: str) -> tuple[Document, bool]:
        """Return the document, and whether it was replaced since."""
        collection, document_id, generation = _parts(name)
        document = await tenant_view.document(document_id, collection)
        return document, document.generation > generation


def _parts(name: str) -> tuple[str, str, int]:
    try:
        decoded = base64.b64decode(name + "=" * (-len(name) % 4), altchars=b"-_", validate=True)
        match json.loads(decoded):
            case [str() as collection, str() as document_id, int() as generation]:
                return collection, document_id, generation
    except ValueError:  # also of what is no base64, no UTF-8 and no JSON
        pass
    raise TaskNotFound(name)


DOCUMENT = DocumentWork()
TOOLS = (define(ingest, "Store a document", repeatable=True, outside=True),)
