"""The app's own documents as a provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.errors import ValidationError
from penstock.model.finding import Finding, FindingsPage
from penstock.model.providers import DOCUMENTS
from penstock.ports.provider import ProviderContext
from penstock.research.identity import arxiv_id_of, canonical_url, doi_of
from penstock.research.providers.fields import known, line
from penstock.research.providers.paged import checked
from penstock.retrieval.search import MAX_HITS, Passage

if TYPE_CHECKING:
    from penstock.documents.service import Documents

PASSAGES = 3
"""Passages requested per document: the best passages are often of the same one."""


class DocumentsProvider:
    """Finds documents of the caller's tenant, each once, by its best passage. All are on one page,
    and nothing has to be fetched: `extra` names the document."""

    name = lane = DOCUMENTS

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def search(
        self, asking: ProviderContext, query: str, limit: int, start: str | None = None
    ) -> AsyncGenerator[FindingsPage, None]:
        asked = checked(query, limit)
        if start is not None:
            raise ValidationError("a search of the documents has one page only")
        most = min(MAX_HITS, limit * PASSAGES)
        found = await self._documents.search(asked, tenant=asking.tenant, limit=most)
        best: dict[str, Finding] = {}
        for passage in found.passages:
            finding = _finding(passage, found.note)
            best.setdefault(finding.provider_id, finding)
        yield FindingsPage(tuple(best.values())[:limit])


def _finding(passage: Passage, note: str) -> Finding:
    collection, document = passage.collection, passage.document
    source = passage.source
    path = f"collections/{quote(collection, safe='')}/documents/{quote(document, safe='')}"
    return Finding(
        provider=DocumentsProvider.name,
        provider_id=path,
        title=line(passage.title) or document,
        url=source if canonical_url(source) else f"penstock:///{path}",
        doi=doi_of(source),
        arxiv_id=arxiv_id_of(source) if canonical_url(source) else None,
        abstract=passage.text,
        extra=known(
            collection=collection,
            document=document,
            chunk=passage.chunk,
            pages=None if passage.pages is None else list(passage.pages),
            note=note or None,
        ),
    )
