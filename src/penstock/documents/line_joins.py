"""Decides which line breaks of a page are only wrapping, and joins those lines.

A line continues in the next if that is right below it, in the same font size, and its first word
would not have fitted; in doubt a small letter decides. Table rows, list items and lines that end
early stay separate. Lengths are in any unit, the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

_ITEM = re.compile(
    r"(?:[-\u2013\u2014*+\u2022\u2023\u2043\u25a0-\u25ff\u00b7\uf0b7>]|\d{1,3}[.)]|\(\w{1,4}\)|\w\))\s"
)
_NUMBERED = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){1,4}\.?|[A-Za-z]\.|[IVXivx]{1,5}\.)\s")
"""A list item, unless a sentence continues: 1.5 percent, J. Weir."""
_ALONE = re.compile(r"#{1,6} |```|~~~|\|")
_CELLS = re.compile(r"\||\t| {3}|[,;]\S[^,;]{0,80}[,;]\S")
_ENDS = re.compile(
    r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]]{0,4}(?:\[\d{1,4}\]){0,9}$"
)
_WORD = re.compile(r"\S{1,80}")
WITHOUT_SPACES = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff9f]")
"""Chinese and Japanese, whose lines break anywhere."""
_LEADING = 1.4
"""Multiple of the usual line spacing; a larger gap starts a new paragraph."""
_FARTHEST = 2.6
"""Multiple of the font size, whatever the usual spacing: lines are at most double-spaced."""
_SAME_SIZE = 1.15
_INDENT = 0.8
"""This and the following are multiples of the font size."""
_NARROW = 15.0
"""Width of a column of addresses, names or figures, where a capital starts something new."""
_EDGE = 3.0
"""A line that ends this close to the right edge of the text was wrapped."""
_CHARACTER = 0.5
"""Assumed width of a character of plain text."""


class TextLine(NamedTuple):
    text: str
    left: float
    right: float
    base: float
    """Vertical position of its baseline."""
    size: float
    """Font size."""
    cells: bool = False
    """Whether it is a table row."""
    hyphen: bool = False
    """Whether a hyphen at its end was removed."""


class Gap(Enum):
    """The gap between two lines."""

    NONE = "the first goes on in the second"
    LINE = "\n"
    PARAGRAPH = "\n\n"


def gaps(lines: Sequence[TextLine]) -> list[Gap]:
    """Classify the gaps between lines."""
    found: list[Gap] = []
    usual = _usual_distances(lines)
    edges = _edges(lines)
    for run in _runs(lines, usual):
        if run.start:
            found.append(_gap_before(lines[run.start - 1], lines[run.start]))
        found += _gaps_in(lines[run.start : run.stop], edges)
    return found


def _bucket(line: TextLine) -> int:
    return round(2 * line.size)


def _usual_distances(lines: Sequence[TextLine]) -> dict[int, float]:
    """Usual line spacing by font size: a lower quartile, since paragraphs are farther apart."""
    distances: dict[int, list[float]] = {}
    for above, below in pairwise(lines):
        if _bucket(above) == _bucket(below) and above.base > below.base:
            distances.setdefault(_bucket(above), []).append(above.base - below.base)
    return {size: sorted(some)[len(some) // 4] for size, some in distances.items()}


def _edges(lines: Iterable[TextLine]) -> dict[int, float]:
    """Right edge of the text, by font size."""
    edges: dict[int, float] = {}
    for line in lines:
        edges[_bucket(line)] = max(line.right, edges.get(_bucket(line), line.right))
    return edges


def _runs(lines: Sequence[TextLine], usual: dict[int, float]) -> Iterator[range]:
    """Group lines that are spaced like those of a paragraph; a group may be several paragraphs."""
    start = 0
    for at, (above, below) in enumerate(pairwise(lines), 1):
        distance = above.base - below.base
        alike = max(above.size, below.size) <= _SAME_SIZE * min(above.size, below.size)
        most = min(_LEADING * usual.get(_bucket(above), distance), _FARTHEST * above.size)
        if not (alike and 0 < distance <= most):
            yield range(start, at)
            start = at
    if lines:
        yield range(start, len(lines))


def _gap_before(above: TextLine, below: TextLine) -> Gap:
    """Classify the gap between two groups: a split word continues, and so does a table, however
    sparse."""
    if above.hyphen:
        return Gap.NONE
    near = 0 < above.base - below.base <= _FARTHEST * above.size
    return Gap.LINE if above.cells and below.cells and near else Gap.PARAGRAPH


def _gaps_in(run: Sequence[TextLine], edges: dict[int, float]) -> Iterator[Gap]:
    edge = max(line.right for line in run)
    longest = max(len(line.text) for line in run)
    width = edge - min(line.left for line in run)
    prose = any(_goes_on(line.text) for line in run[1:])
    first = True
    """Whether the line above starts a paragraph."""
    for above, below in pairwise(run):
        size = above.size
        wide = width >= _NARROW * size
        flowing = prose or edge >= edges[_bucket(above)] - _EDGE * size
        full = _is_full(above, below, edge, longest)
        ends = _ENDS.search(above.text) is not None
        gap = Gap.LINE
        if above.hyphen:
            gap = Gap.NONE
        elif above.cells != below.cells:
            gap = Gap.PARAGRAPH
        elif above.cells or _ALONE.match(above.text) or _begins_item(below.text, behind_end=ends):
            pass
        elif _is_indented(above, below, first=first):
            gap = Gap.PARAGRAPH
        elif full and (_goes_on(below.text) or (wide and flowing)):
            gap = Gap.NONE
        elif ends and prose:
            gap = Gap.PARAGRAPH
        elif wide and not ends and below.text[:1].islower():
            gap = Gap.NONE
        yield gap
        first = gap is not Gap.NONE


def _begins_item(text: str, *, behind_end: bool) -> bool:
    if _ITEM.match(text) or _ALONE.match(text):
        return True
    return behind_end and _NUMBERED.match(text) is not None


def _goes_on(text: str) -> bool:
    """Whether a line starts in the middle of a sentence."""
    return text[:1].islower() or WITHOUT_SPACES.match(text) is not None


def _is_full(above: TextLine, below: TextLine, edge: float, longest: int) -> bool:
    """Whether the first word of the next line would not have fitted: by its width, or by its number
    of characters for text that was wrapped without knowing the font."""
    if WITHOUT_SPACES.match(below.text):
        characters = 1
    else:
        word = _WORD.match(below.text)
        characters = 1 + (len(word[0]) if word else 0)
    each = (below.right - below.left) / max(1, len(below.text))
    return above.right + each * characters > edge or len(above.text) + characters > longest


def _is_indented(above: TextLine, below: TextLine, *, first: bool) -> bool:
    """Whether the indentation of the next line starts a paragraph: items hang below their bullet,
    and the first line of a paragraph may be indented."""
    shift = (below.left - above.left) / above.size
    if abs(shift) <= _INDENT:
        return False
    return not first or (shift > 0 and not _ITEM.match(above.text))


def soft_breaks(text: str) -> set[int]:
    """Find the line breaks in plain text that are only wrapping. All characters count as equally
    wide."""
    lines: list[TextLine] = []
    starts: list[int] = []
    at = 0
    for row, line in enumerate(text.split("\n")):
        if shown := line.strip():
            left = _CHARACTER * (len(line) - len(line.lstrip()))
            right = left + _CHARACTER * len(shown)
            cells = _CELLS.search(shown) is not None
            lines.append(TextLine(shown, left, right, -float(row), 1.0, cells))
            starts.append(at)
        at += len(line) + 1
    between = zip(starts[1:], gaps(lines), strict=True) if lines else ()
    return {start - 1 for start, gap in between if gap is Gap.NONE}
