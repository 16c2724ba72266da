"""Makes chunks of masked text ready to be stored: hash, terms, script.

It is done by the parser's children. In a thread of the worker process it would take the interpreter
from all others, the one that commits included, for 10 ms a document.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from penstock.documents.chunk import ChunkSettings, chunk
from penstock.documents.parsed import Heading, PageSpan, Table
from penstock.documents.tokens import CountTokens, count_tokens
from penstock.model.document import NewChunk
from penstock.retrieval.terms import script, term_line


@dataclass(slots=True, frozen=True)
class Uncut:
    """A masked text, with the positions of its labels, pages, headings and tables."""

    text: str
    labels: list[tuple[int, int]]
    pages: list[PageSpan]
    headings: list[Heading]
    tables: list[Table] = field(default_factory=list)


def cut(uncut: Uncut, settings: ChunkSettings, count: CountTokens = count_tokens) -> list[NewChunk]:
    chunks = chunk(
        uncut.text,
        settings,
        count=count,
        keep=uncut.labels,
        pages=uncut.pages,
        headings=uncut.headings,
        tables=uncut.tables,
    )
    return [
        NewChunk(
            text=one.text,
            start=one.start,
            end=one.end,
            fresh=one.fresh,
            tokens=one.tokens,
            pages=one.pages,
            section=one.section,
            hash=hashlib.sha256(one.text.encode()).hexdigest(),
            terms=term_line(one.text),
            script=script(one.text),
            page_starts=one.page_starts,
        )
        for one in chunks
    ]
