"""The text of what was read, in parts."""

from __future__ import annotations

from penstock.ingest.library import Library
from penstock.model.document import StoredChunk
from penstock.model.errors import ValidationError
from penstock.research.page import FETCHED_AT, page_id
from penstock.research.views import PageText


async def page_text(
    library: Library, tenant: str, collection: str, name: str, start: int, limit: int
) -> PageText:
    """`name` is a document's id, or the address of a page."""
    document = await library.get(_id_of(name), collection=collection, tenant=tenant)
    chunks = await library.chunks(document.ref.id, collection=collection, tenant=tenant)
    text = joined(chunks)
    end = min(start + limit, len(text))
    fetched = document.metadata.get(FETCHED_AT)
    return PageText(
        collection=document.ref.collection,
        document=document.ref.id,
        title=document.title,
        url=document.source,
        fetched_at=None if fetched is None else str(fetched),
        text=text[start:end],
        start=min(start, len(text)),
        total=len(text),
        cursor=str(end) if end < len(text) else None,
    )


def _id_of(name: str) -> str:
    if not name.startswith(("http://", "https://")):
        return name
    try:
        return page_id(name)
    except ValidationError:  # a document may be called like that
        return name


def joined(chunks: list[StoredChunk]) -> str:
    """The text that chunks were cut from: what two neighbours share is there once, and so are
    the headers of tables."""
    text = ""
    for chunk in chunks:
        repeated = len(chunk.text) - (chunk.end - chunk.start)
        text += chunk.text[repeated + max(0, len(text) - chunk.start) :]
    return text
