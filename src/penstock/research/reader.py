"""Returns the text of a stored page, in parts."""

from __future__ import annotations

from penstock.documents.service import Documents
from penstock.errors import DocumentNotFound, ValidationError
from penstock.model.document import Document, StoredChunk
from penstock.research.page import FETCHED_AT, PAGES, page_id
from penstock.wire.tasks import PageText

_NAMED = 20
"""Collections named in the error if several have the document."""


async def page_text(
    documents: Documents, tenant: str, collection: str | None, name: str, start: int, limit: int
) -> PageText:
    """Return a part of the text; `name` is a document's id, or the URL of a page."""
    document = await _document(documents, tenant, collection, name)
    chunks = await documents.chunks(document.id, collection=document.collection, tenant=tenant)
    text = joined(chunks)
    end = min(start + limit, len(text))
    fetched = document.metadata.get(FETCHED_AT)
    return PageText(
        collection=document.collection,
        document=document.id,
        title=document.title,
        url=document.source,
        fetched_at=None if fetched is None else str(fetched),
        text=text[start:end],
        start=min(start, len(text)),
        total=len(text),
        cursor=str(end) if end < len(text) else None,
    )


async def _document(
    documents: Documents, tenant: str, collection: str | None, name: str
) -> Document:
    try:
        return await documents.get(_id_of(name), collection=collection or PAGES, tenant=tenant)
    except DocumentNotFound:
        holding = await documents.collections_of(name, tenant=tenant)
        if collection is not None or not holding:
            raise
    if len(holding) > 1:
        there = ", ".join(map(repr, holding[:_NAMED]))
        raise ValidationError(f"this document is in several collections; name one: {there}")
    return await documents.get(name, collection=holding[0], tenant=tenant)


def _id_of(name: str) -> str:
    if not name.startswith(("http://", "https://")):
        return name
    try:
        return page_id(name)
    except ValidationError:  # a document may be called like that
        return name


def joined(chunks: list[StoredChunk]) -> str:
    """Rebuild the text that chunks were cut from: without overlaps and repeated table headers."""
    text = ""
    for chunk in chunks:
        repeated = len(chunk.text) - (chunk.end - chunk.start)
        text += chunk.text[repeated + max(0, len(text) - chunk.start) :]
    return text
