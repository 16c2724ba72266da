"""The text of a document while it is read, with stable offsets.

Blocks are set apart by an empty line, rows of a table by a line break. Every piece is cleaned as it
comes in. Line breaks combine with nothing, so the whole is normal because its pieces are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parsed import Heading, PageSpan, Parsed, Table
from penstock.errors import ParserError
from penstock.text.normalize import normalized, storable

_LINE_BREAKS = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f\ufffe\uffff]")
_BLANKS = re.compile(r"\s+")
_TITLE_MOST = 500
_PAGE_LOOKED_AT = 100_000
"""Characters of a page that are searched for its headings; a full page has some 5,000."""
CELL_GAP = " | "
_COLUMNS = 2
"""Minimum cells of a row that names columns. A single cell above it is a title."""
_NO_TEXT = "it contains no text"
_PICTURES = "it contains only images; set `scans: ocr` or `model` to read them"


def clean(text: str) -> str:
    """Normalize text: NFC, line breaks as \\n, without characters that are invisible or cannot be
    stored."""
    text = _CONTROLS.sub("", _LINE_BREAKS.sub("\n", storable(text)))
    return normalized("NFC", text)


def one_line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


def _put(values: dict[str, str], key: str, value: str | None) -> None:
    value = one_line(clean(value or ""))[:_TITLE_MOST]
    if value:
        values[key] = value


class Draft:
    def __init__(self, limits: ParseLimits, scanned: Mapping[int, str] | None = None) -> None:
        self._limits = limits
        self._scanned = scanned or {}
        """Text that was read on scanned pages."""
        self._pieces: list[str] = []
        self._length = 0
        self._gap = ""
        self._page_starts: list[int] = []
        self._scans: list[int] = []
        self._headings: list[Heading] = []
        self._tables: list[Table] = []
        self._in_head = False
        """Whether the next row of the table still belongs to its header."""
        self._marks: list[tuple[int, str, int]] = []
        self.title: str | None = None
        self.metadata: dict[str, str] = {}
        self._reading: dict[str, str] = {}

    @property
    def length(self) -> int:
        """Characters of text so far."""
        return self._length

    def page(self) -> None:
        """Start the next page."""
        if len(self._page_starts) >= self._limits.pages:
            raise ParserError(f"more than {self._limits.pages} pages", "oversized")
        self.end_table()
        self._flush_gap()
        self._page_starts.append(self._length)

    def scan(self) -> bool:
        """Mark the current page as scanned; returns whether it is or will be read."""
        number = len(self._page_starts)
        if number in self._scanned:
            self.block(self._scanned[number])
            return True
        self._scans.append(number)
        if 0 < self._limits.scans < len(self._scans):
            raise ParserError(f"more than {self._limits.scans} pages are pictures", "oversized")
        return self._limits.scans > 0

    def heading(self, level: int, title: str) -> None:
        title = one_line(clean(title))
        if title:
            self._separate("\n\n")
            self._headings.append(Heading(level, self._length, title[:_TITLE_MOST]))
            self._append(title)
            self._gap = "\n\n"

    def block(self, text: str) -> None:
        """Add a paragraph, or any text with its own lines."""
        text = clean(text).strip()
        if text:
            self._separate("\n\n")
            self._append(text)
            self._gap = "\n\n"

    def row(self, cells: Iterable[str]) -> None:
        """Add a table row; consecutive rows are one block. The first is its header, with single
        cells above it."""
        shown: list[str] = []
        length = self._length
        for cell in cells:
            shown.append(one_line(clean(cell)))
            length += len(shown[-1])
            self._check(length)  # many cells may be one long text
        line = CELL_GAP.join(shown)
        if line.replace(CELL_GAP.strip(), "").strip():
            goes_on = self._gap == "\n"
            self._separate("\n")
            start, end = self._length, self._length + len(line)
            self._append(line)
            self._gap = "\n"
            table = self._tables.pop() if goes_on else Table(start, end, end)
            head_end = end if not goes_on or self._in_head else table.head_end
            self._tables.append(Table(table.start, head_end, end))
            self._in_head = head_end == end and sum(map(bool, shown)) < _COLUMNS

    def whole(
        self, text: str, headings: Iterable[Heading] = (), tables: Iterable[Table] = ()
    ) -> None:
        """Set the whole text at once; other offsets refer to it."""
        self._append(text)
        self._headings += headings
        self._tables += tables

    def end_table(self) -> None:
        if self._gap:
            self._gap = "\n\n"

    def mark(self, level: int, title: str, page: int) -> None:
        """Add a heading by its page (from 0): where the page contains it, else at its start."""
        self._marks.append((level, title, page))

    def note(self, key: str, value: str | None) -> None:
        """Add a property that the document states about itself."""
        _put(self.metadata, key, value)

    @property
    def headings(self) -> list[Heading]:
        return self._headings

    def tell(self, key: str, value: str | None) -> None:
        """Record how the document was read: see `Parsed.reading`."""
        _put(self._reading, key, value)

    def finish(self, mime: str) -> Parsed:
        text = "".join(self._pieces)
        scans = tuple(self._scans) if self._limits.scans else ()
        if not text.strip() and not scans:
            if self._scans:
                raise ParserError(_PICTURES, "scanned")
            raise ParserError(_NO_TEXT, "empty")
        ends = [*self._page_starts[1:], len(text)]
        pages = tuple(
            PageSpan(number, start, end)
            for number, (start, end) in enumerate(zip(self._page_starts, ends, strict=False), 1)
        )
        for level, mark, page in self._marks:
            end = min(pages[page].end, pages[page].start + _PAGE_LOOKED_AT)
            found = text.find(mark, pages[page].start, end)
            start = pages[page].start if found < 0 else found
            self._headings.append(Heading(level, start, mark))
        headings = tuple(sorted(self._headings, key=lambda heading: heading.start))
        title = one_line(clean(self.title or ""))[:_TITLE_MOST]
        if not title and headings:
            title = headings[0].title
        tables = tuple(table for table in self._tables if table.head_end < table.end)
        known = (dict(self.metadata), scans, dict(self._reading), tables)
        return Parsed(text, title or None, mime, pages, headings, *known)

    def _separate(self, gap: str) -> None:
        # The wider gap wins: a paragraph behind a table, a table behind a paragraph.
        if self._gap and len(gap) > len(self._gap):
            self._gap = gap
        self._flush_gap()

    def _flush_gap(self) -> None:
        self._append(self._gap)
        self._gap = ""

    def _append(self, text: str) -> None:
        self._length += len(text)
        self._check(self._length)
        if text:
            self._pieces.append(text)

    def _check(self, length: int) -> None:
        if length > self._limits.characters:
            raise ParserError(f"more than {self._limits.characters} characters", "oversized")
