"""From what was parsed to what is stored: masked first, then cut into chunks."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

from penstock.corpus.terms import index_terms, script
from penstock.ingest.chunk import ChunkSettings, chunk
from penstock.ingest.mask import Masked, Masker
from penstock.ingest.parsed import Heading, Page, Parsed
from penstock.ingest.tokens import CountTokens, count_tokens
from penstock.model.document import NewChunk, Staged

MARKUP = 16
"""Signs between the start of a heading and its title, at most."""


def prepare(
    parsed: Parsed,
    title: str,
    mask: Masker,
    settings: ChunkSettings,
    count: CountTokens = count_tokens,
    masked: Mapping[str, int] | None = None,
) -> Staged:
    """Nothing that comes out of here is unmasked. `title` is used where the document has none;
    `masked` counts what was masked already."""
    whole = mask(parsed.text)
    chunks = chunk(
        whole.text,
        settings,
        count=count,
        keep=whole.labels,
        pages=_pages(parsed, whole),
        headings=_headings(parsed, whole, mask),
    )
    return Staged(
        text=whole.text,
        chunks=[
            NewChunk(
                text=one.text,
                start=one.start,
                end=one.end,
                fresh=one.fresh,
                tokens=one.tokens,
                pages=one.pages,
                section=one.section,
                hash=hashlib.sha256(one.text.encode()).hexdigest(),
                terms=" ".join(index_terms(one.text)),
                script=script(one.text),
            )
            for one in chunks
        ],
        title=mask(parsed.title or title).text,
        mime=parsed.mime,
        masked=dict(Counter(whole.counts) + Counter(masked)),
    )


def _pages(parsed: Parsed, masked: Masked) -> list[Page]:
    return [
        Page(page.number, masked.position(page.start), masked.position(page.end))
        for page in parsed.pages
    ]


def _headings(parsed: Parsed, masked: Masked, mask: Masker) -> list[Heading]:
    return [
        Heading(
            heading.level, masked.position(heading.start), _title(heading, parsed, masked, mask)
        )
        for heading in parsed.headings
    ]


def _title(heading: Heading, parsed: Parsed, masked: Masked, mask: Masker) -> str:
    """As it is in the text, where it stands there: a name may be known by what is around it."""
    title = heading.title
    at = parsed.text.find(title, heading.start, heading.start + len(title) + MARKUP)
    if at >= 0:
        title = masked.text[masked.position(at) : masked.position(at + len(title))]
    return mask(title).text
