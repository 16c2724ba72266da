"""Research tasks and stored pages as resources, for clients that let a person choose what a model
reads. They are those of the caller's tenant, and only looked at.

    penstock://tasks/{task_id}                  a research task, all of it, as Markdown
    penstock://pages/{collection}/{document}    the text of a page or document
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, unquote

from mcp.server.context import ServerRequestContext
from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from pydantic import BaseModel

from penstock.errors import DocumentNotFound, ValidationError
from penstock.mcp.errors import CallRefused, in_protocol
from penstock.mcp.tool_view import McpServices, ToolView, tenant_view_for
from penstock.model.access import KeyScope
from penstock.model.document import Document
from penstock.text.normalize import storable
from penstock.text.untrusted import fenced
from penstock.wire.tasks import TaskLine

TASKS = "penstock://tasks/"
PAGES = "penstock://pages/"
LISTED = 50
"""Resources per page of the list."""
MAX_CHARACTERS = 200_000
"""Maximum characters of one resource; longer ones are truncated, and say so."""
MARKDOWN = "text/markdown"
PLAIN = "text/plain"
TASK_PAGE = "t"
DOCUMENT_PAGE = "d"
"""Prefix of a cursor: tasks are listed first, then documents."""
PLACES = {TASK_PAGE: re.compile("(?:[0-9a-f]{32})?"), DOCUMENT_PAGE: re.compile("[0-9]{0,18}")}
"""The rest of a cursor: the last id, or the last generation."""

IntakeRequest = ServerRequestContext[McpServices, Any]


async def _list(ctx: IntakeRequest, params: PaginatedRequestParams | None) -> ListResourcesResult:
    tenant_view = await in_protocol(_tenant_view(ctx), "")
    cursor = None if params is None else params.cursor
    return await in_protocol(_page(tenant_view, cursor), "there is no such page of the list")


async def _templates(
    ctx: IntakeRequest, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                name="task",
                title="A research task",
                uri_template=f"{TASKS}{{task_id}}",
                description="Its question, searches, results and errors so far.",
                mime_type=MARKDOWN,
            ),
            ResourceTemplate(
                name="page",
                title="A stored page or document",
                uri_template=f"{PAGES}{{collection}}/{{document}}",
                description="Its text. Pages that research tasks have read are in `web`.",
                mime_type=PLAIN,
            ),
        ]
    )


async def _read(ctx: IntakeRequest, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = str(params.uri)

    async def read() -> TextResourceContents:
        return await _contents(await _tenant_view(ctx), uri)

    contents = await in_protocol(read(), "there is no such resource", uri=uri)
    return ReadResourceResult(contents=[contents])


async def _tenant_view(ctx: IntakeRequest) -> ToolView:
    tenant_view = tenant_view_for(ctx, KeyScope.READ)
    if (why := tenant_view.caller.confined()) is not None:
        raise CallRefused("forbidden", why)
    return tenant_view


async def _page(tenant_view: ToolView, cursor: str | None) -> ListResourcesResult:
    """List one page: tasks, or after the last of them documents."""
    kind, after = (TASK_PAGE, "") if cursor is None else (cursor[:1], cursor[1:])
    if kind not in PLACES or not PLACES[kind].fullmatch(after):
        raise ValidationError("cursor is that of the page before")
    if kind == TASK_PAGE:
        tasks = await tenant_view.research.tasks(
            tenant=tenant_view.tenant, limit=LISTED + 1, before=after or None
        )
        if len(tasks) > LISTED:
            shown = tasks[:LISTED]
            following = f"{TASK_PAGE}{shown[-1].task_id}"
            return ListResourcesResult(
                resources=[_task(one) for one in shown], next_cursor=following
            )
        if tasks:
            return ListResourcesResult(
                resources=[_task(one) for one in tasks], next_cursor=DOCUMENT_PAGE
            )
        after = ""
    found = await tenant_view.documents.documents(
        tenant=tenant_view.tenant, limit=LISTED + 1, before=int(after) if after else None
    )
    rest = found[:LISTED]
    return ListResourcesResult(
        resources=[_document(one) for one in rest if one.searchable],
        next_cursor=f"{DOCUMENT_PAGE}{rest[-1].generation}" if len(found) > LISTED else None,
    )


def _task(task: TaskLine) -> Resource:
    return Resource(
        uri=f"{TASKS}{quote(task.task_id, safe='')}",
        name=task.task_id,
        title=task.question,
        description=f"Research task, {task.status}, {task.progress} searches finished.",
        mime_type=MARKDOWN,
    )


def _document(document: Document) -> Resource:
    collection, name = (quote(one, safe="") for one in document.ref[1:])
    return Resource(
        uri=f"{PAGES}{collection}/{name}",
        name=document.id,
        title=document.title or document.source or document.id,
        description=f"Document of collection {document.collection!r}.",
        mime_type=PLAIN,
    )


async def _contents(tenant_view: ToolView, uri: str) -> TextResourceContents:
    """Read a resource. Most of it is untrusted, so it is fenced."""
    if uri.startswith(TASKS):
        text = await tenant_view.research.export(
            _part(uri.removeprefix(TASKS)), tenant=tenant_view.tenant
        )
        whole, source, media = len(text), "a research task", MARKDOWN
    elif uri.startswith(PAGES):
        collection, _, name = uri.removeprefix(PAGES).partition("/")
        page = await tenant_view.research.page(
            _part(name),
            collection=_part(collection),
            limit=MAX_CHARACTERS,
            tenant=tenant_view.tenant,
        )
        text, whole, source, media = page.text, page.total, page.url or page.document, PLAIN
    else:
        raise DocumentNotFound(uri)
    told = fenced(text[:MAX_CHARACTERS], source)
    if whole > MAX_CHARACTERS:
        told += f"\nThese are {MAX_CHARACTERS:,} of {whole:,} characters; tools read the rest."
    return TextResourceContents(uri=uri, text=told, mime_type=media)


def _part(encoded: str) -> str:
    """Decode a part of the URI. Raises DocumentNotFound if it cannot be a name."""
    name = unquote(encoded)
    if not name or storable(name) != name:
        raise DocumentNotFound(encoded)
    return name


RESOURCES: dict[str, tuple[type[RequestParams], Callable[[Any, Any], Awaitable[BaseModel]]]] = {
    "resources/list": (PaginatedRequestParams, _list),
    "resources/templates/list": (PaginatedRequestParams, _templates),
    "resources/read": (ReadResourceRequestParams, _read),
}
"""Handlers of the protocol's methods."""
