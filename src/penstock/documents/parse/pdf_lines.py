"""Joins the lines of a PDF page, as PDFium reports them, to paragraphs.

A PDF has no paragraphs, only positions of characters; `penstock.documents.line_joins` decides which
lines continue in the next. A hyphen at the end of a line is removed if it only split a word.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator
from typing import Any

from penstock.documents.line_joins import WITHOUT_SPACES, Gap, TextLine, gaps

# PDFium's sign for a hyphen at the end of a line, which is not followed by a line break then.
_LINE_END = re.compile("(?P<hyphen>[\x02\ufffe])(?:\r\n?|\n)?|\r\n?|\n")
_HYPHENS = "-\u2010\u00ad"
_CELL_GAP = 1.0
"""Multiple of the font size: a wider gap in a line separates two cells. Gaps in justified text are
narrower."""
_MOST_PARTS = 100
"""Maximum parts of a line to search for gaps."""
_WORDS = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_FIRST, _LAST = re.compile(r"[^\W\d_]+"), re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*$")
_LONGEST_WORD = 100
_CUT_ADDRESS = re.compile(r"(?:\S@|@[\w.-]{1,80}\.|(?:https?://|www\.)\S{0,300}[/._=&?%])$")
"""Beginning of a URL or email address that continues in the next line. With a space in it, it would
not be recognized, not even for masking."""
_LONGEST_ADDRESS = 400
_SUSPENDED = frozenset({"and", "or", "to", "und", "oder", "bis", "et", "ou", "y", "e", "en", "of"})
"""Words after a suspended hyphen: pre- and post-war."""
_COMPOUNDS = frozenset({"self", "well", "half", "ex", "all", "quasi"})
"""Prefixes that are hardly ever joined with the word that follows."""


class Hyphens:
    """Mends words at the ends of lines, by how the document spells them elsewhere.

    Behind a hyphen a capital or a digit keeps it (SK-2305). Before a small letter it mostly broke a
    word, so it goes, unless the document has the compound with it, and not the word without, as far
    as it was read; or the compound has another hyphen, or one of a few beginnings that keep theirs.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, text: str) -> None:
        """Record how words are spelled within lines."""
        self._known.update(map(str.lower, _WORDS.findall(text)))

    def mended(self, before: str, after: str) -> str:
        """Return what to put between two parts of a word; `before` ended with a hyphen."""
        tail, head = _LAST.search(before[-_LONGEST_WORD:]), _FIRST.match(after[:_LONGEST_WORD])
        if tail is None or head is None or not after[:1].islower():
            return "-"
        left, right = tail[0].lower(), head[0].lower()
        if right in _SUSPENDED:
            return "- "
        if f"{left}{right}" in self._known:
            return ""
        compound = f"{left}-{right}" in self._known or left in _COMPOUNDS
        return "-" if compound or "-" in left or "\u2010" in left else ""


def page_text(layer: Any, hyphens: Hyphens) -> str:
    """Build the text of a page from its text layer: one line per paragraph, separated by an empty
    line."""
    lines = list(_lines(layer))
    for line in lines:
        # A word that a line break cut is not spelled so.
        hyphens.learn(line.text.rpartition(" ")[0] if line.hyphen else line.text)
    pieces = [line.text for line in lines[:1]]
    for (above, below), gap in zip(itertools.pairwise(lines), gaps(lines), strict=True):
        if above.hyphen:
            pieces.append(hyphens.mended(above.text, below.text) if gap is Gap.NONE else "-")
        if gap is not Gap.NONE:
            pieces.append(gap.value)
        elif not above.hyphen and not _without_space(above.text, below.text):
            pieces.append(" ")
        pieces.append(below.text)
    if lines and lines[-1].hyphen:
        pieces.append("-")
    return "".join(pieces)


def _without_space(above: str, below: str) -> bool:
    if WITHOUT_SPACES.match(above[-1]) and WITHOUT_SPACES.match(below[0]):
        return True
    return _CUT_ADDRESS.search(above[-_LONGEST_ADDRESS:]) is not None


def _lines(layer: Any) -> Iterator[TextLine]:
    text = _characters(layer)
    start = 0
    for end in _LINE_END.finditer(text):
        yield from _line(layer, text, start, end.start(), hyphen=end["hyphen"] is not None)
        start = end.end()
    yield from _line(layer, text, start, len(text))


def _characters(layer: Any) -> str:
    """Return all characters, by number."""
    from pypdfium2.raw import FPDFText_GetUnicode

    text: str = layer.get_text_range()
    count = layer.count_chars()
    if len(text) == count:
        return text
    # Those without a meaning are left out of it: one by one they can be counted.
    signs = (FPDFText_GetUnicode(layer, index) for index in range(count))
    return "".join(chr(sign) if sign < 0x110000 else "\ufffd" for sign in signs)


def _line(
    layer: Any, text: str, start: int, end: int, *, hyphen: bool = False
) -> Iterator[TextLine]:
    shown = text[start:end].replace("\x00", "").strip()
    if not shown:
        return
    while text[start].isspace() or text[start] == "\x00":
        start += 1
    if not hyphen and len(shown) > 1 and shown[-1] in _HYPHENS and not shown[-2].isspace():
        shown, hyphen = shown[:-1], True
    _, bottom, _, top = layer.get_charbox(start, loose=True)
    size = max(top - bottom, 0.1)
    left, right, cells = _extent(layer, start, end, size)
    yield TextLine(shown, left, right, bottom, size, cells, hyphen)


def _extent(layer: Any, start: int, end: int, size: float) -> tuple[float, float, bool]:
    """Return the start and end of a line, and whether it has gaps as between cells."""
    from pypdfium2.raw import FPDFText_CountRects, FPDFText_GetRect

    count = FPDFText_CountRects(layer, start, end - start)
    box = tuple(ctypes.c_double() for _ in range(4))
    left, right, cells = float("inf"), float("-inf"), False
    for index in range(count) if count <= _MOST_PARTS else (0, count - 1):
        FPDFText_GetRect(layer, index, *box)
        cells = cells or (index > 0 and box[0].value - right > _CELL_GAP * size)
        left, right = min(left, box[0].value), max(right, box[2].value)
    return (left, right, cells) if count > 0 else (0.0, 0.0, False)
