"""Decides which line breaks of a page are only wrapping, and joins those lines.

A line goes on in the next where it stands right above it, in letters of the same size, and the
next word would not have fitted; in doubt a small letter decides. Rows of tables, items of lists and
lines that end early stay lines of their own. Lengths are in any unit, the same for all.
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
"""An item, unless a sentence goes on: 1.5 percent, J. Weir."""
_ALONE = re.compile(r"#{1,6} |```|~~~|\|")
_CELLS = re.compile(r"\||\t| {3}|[,;]\S[^,;]{0,80}[,;]\S")
_ENDS = re.compile(
    r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]]{0,4}(?:\[\d{1,4}\]){0,9}$"
)
_WORD = re.compile(r"\S{1,80}")
WITHOUT_SPACES = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff9f]")
"""Chinese and Japanese, whose lines break anywhere."""
_LEADING = 1.4
"""Times the usual distance of two lines: what is farther apart is another paragraph."""
_FARTHEST = 2.6
"""Times the size of its letters, whatever is usual: lines are typed double-spaced at most."""
_SAME_SIZE = 1.15
_INDENT = 0.8
"""Of these and all below the unit is the size of the letters."""
_NARROW = 15.0
"""A column of addresses, names or figures: capitals begin something new there."""
_EDGE = 3.0
"""As near as this to the right edge of the page's text a line ends because the page does."""
_CHARACTER = 0.5
"""How wide a character of plain text is taken to be."""


class TextLine(NamedTuple):
    text: str
    left: float
    right: float
    base: float
    """How high it stands."""
    size: float
    """Of its letters."""
    cells: bool = False
    """Whether it is a row of a table."""
    hyphen: bool = False
    """Whether a hyphen that it ended with was taken away."""


class Gap(Enum):
    """The gap between two lines."""

    NONE = "the first goes on in the second"
    LINE = "\n"
    PARAGRAPH = "\n\n"


def gaps(lines: Sequence[TextLine]) -> list[Gap]:
    """One less than there are lines."""
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
    """By size: a lower quartile, since between paragraphs there is more."""
    distances: dict[int, list[float]] = {}
    for above, below in pairwise(lines):
        if _bucket(above) == _bucket(below) and above.base > below.base:
            distances.setdefault(_bucket(above), []).append(above.base - below.base)
    return {size: sorted(some)[len(some) // 4] for size, some in distances.items()}


def _edges(lines: Iterable[TextLine]) -> dict[int, float]:
    """By size, the right edge of the whole text."""
    edges: dict[int, float] = {}
    for line in lines:
        edges[_bucket(line)] = max(line.right, edges.get(_bucket(line), line.right))
    return edges


def _runs(lines: Sequence[TextLine], usual: dict[int, float]) -> Iterator[range]:
    """Lines that stand below each other as those of a paragraph do, though it may be several."""
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
    """Between two runs: a word that was cut goes on, and so does a table, however airy."""
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
    """Whether the line above begins a paragraph."""
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
    """Whether a line begins as the middle of a sentence does."""
    return text[:1].islower() or WITHOUT_SPACES.match(text) is not None


def _is_full(above: TextLine, below: TextLine, edge: float, longest: int) -> bool:
    """Whether the first word of the line below would not have fitted: by its width, or, where lines
    were broken before anybody knew the letters, by the count of its characters."""
    if WITHOUT_SPACES.match(below.text):
        characters = 1
    else:
        word = _WORD.match(below.text)
        characters = 1 + (len(word[0]) if word else 0)
    each = (below.right - below.left) / max(1, len(below.text))
    return above.right + each * characters > edge or len(above.text) + characters > longest


def _is_indented(above: TextLine, below: TextLine, *, first: bool) -> bool:
    """Whether the line below begins farther right or left, and that begins a paragraph: an item
    hangs below its mark, and the first line of a paragraph may be farther right than the next."""
    shift = (below.left - above.left) / above.size
    if abs(shift) <= _INDENT:
        return False
    return not first or (shift > 0 and not _ITEM.match(above.text))


def soft_breaks(text: str) -> set[int]:
    """Offsets of the line breaks in plain text after which a paragraph goes on. All characters are
    taken to be of one width."""
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
