"""Masks a parsed document, so that it may be stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.documents.mask import Masked, Masker
from penstock.documents.parsed import Heading, PageSpan, Parsed, Table
from penstock.documents.stored_chunks import Uncut
from penstock.model.document import NewChunk, Staged

MARKUP = 16
"""Maximum characters of markup between the start of a heading and its title."""


@dataclass(slots=True, frozen=True)
class Prepared:
    uncut: Uncut
    title: str
    masked: Mapping[str, int]
    reading: Mapping[str, str]

    def staged(self, chunks: Sequence[NewChunk], mime: str) -> Staged:
        return Staged(self.uncut.text, chunks, self.title, mime, self.masked, self.reading)


def prepare(
    parsed: Parsed, title: str, mask: Masker, masked: Mapping[str, int] | None = None
) -> Prepared:
    """Mask a parsed document; nothing in the result is unmasked. `title` is used if the document
    has none; `masked` counts what was masked before."""
    whole = mask(parsed.text)
    return Prepared(
        Uncut(
            whole.text,
            whole.labels,
            _pages(parsed, whole),
            _headings(parsed, whole, mask),
            [Table(*map(whole.position, table)) for table in parsed.tables],
        ),
        mask(parsed.title or title).text,
        dict(Counter(whole.counts) + Counter(masked)),
        {key: mask(value).text for key, value in parsed.reading.items()},
    )


def _pages(parsed: Parsed, masked: Masked) -> list[PageSpan]:
    return [
        PageSpan(page.number, masked.position(page.start), masked.position(page.end))
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
    """Mask a title as it appears in the text, if it does: context may reveal a name."""
    title = heading.title
    at = parsed.text.find(title, heading.start, heading.start + len(title) + MARKUP)
    if at >= 0:
        title = masked.text[masked.position(at) : masked.position(at + len(title))]
    return mask(title).text
