"""A parsed document. Plain data: it crosses a pipe as JSON.

text      NFC, no NUL, no lone surrogates; line breaks are \\n
pages     in order, side by side: number (from 1), start, end in `text`; none if there are no pages
headings  in order: level (from 1), start in `text`, title as it reads there
tables    in order: start, end of the header row (or rows), end in `text`; a row is a line
scans     numbers of the pages whose text is in a picture, and so not in `text`
metadata  what the document says of itself
reading   of a page of the web: whether `text` is its main text or the whole, and what it says of
          itself as far as that is kept

Nothing in it is masked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class PageSpan(NamedTuple):
    number: int
    start: int
    end: int


class Heading(NamedTuple):
    level: int
    start: int
    title: str


class Table(NamedTuple):
    start: int
    head_end: int
    end: int


@dataclass(slots=True, frozen=True)
class Parsed:
    text: str
    title: str | None
    mime: str
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    scans: tuple[int, ...] = ()
    reading: dict[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
