"""From what was parsed to what may be stored: masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.ingest.cut import Uncut
from penstock.ingest.mask import Masked, Masker
from penstock.ingest.parsed import Heading, Page, Parsed


@dataclass(slots=True, frozen=True)
class Prepared:
    uncut: Uncut
    title: str
    masked: Mapping[str, int]


def prepare(parsed: Parsed, title: str, mask: Masker) -> Prepared:
    """Nothing that comes out of here is unmasked. `title` is used where the document has none."""
    masked = mask(parsed.text)
    return Prepared(
        Uncut(masked.text, masked.labels, _pages(parsed, masked), _headings(parsed, masked, mask)),
        mask(parsed.title or title).text,
        masked.counts,
    )


def _pages(parsed: Parsed, masked: Masked) -> list[Page]:
    return [
        Page(page.number, masked.position(page.start), masked.position(page.end))
        for page in parsed.pages
    ]


def _headings(parsed: Parsed, masked: Masked, mask: Masker) -> list[Heading]:
    return [
        Heading(heading.level, masked.position(heading.start), mask(heading.title).text)
        for heading in parsed.headings
    ]
