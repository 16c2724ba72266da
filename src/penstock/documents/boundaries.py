"""Ranks the places where a text may be split: paragraphs, then sentences, then words.

A boundary is the offset behind a break: the blanks of a break belong to what is before them, so
that pieces put side by side are the text again.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import compress


class CutStrength(IntEnum):
    NONE = 0
    WORD = 1
    CLAUSE = 2
    LINE = 3
    SENTENCE = 4
    PARAGRAPH = 5
    HEADING = 6


_CLOSING = "[\"'\u201d\u2019)\\]\uff09\u300d\u300f\u3011]"
# Repeats are bounded: without, a line of a million dots would be read a million times. The first
# sign is matched before it is asked which it is: for that the engine skips all others at once.
_STOP, _WIDE_STOP = ".!?\u2026", "\u3002\uff01\uff1f\uff61"
_COMMA, _WIDE_COMMA = ",;:", "\u3001\uff0c"
_BREAK = re.compile(
    rf"[{_STOP}{_WIDE_STOP}{_COMMA}{_WIDE_COMMA}\s](?:"
    r"(?P<BLANK>(?<= )(?!\s))"
    rf"|(?P<SENTENCE>(?<=[{_WIDE_STOP}])[{_WIDE_STOP}]{{0,7}}{_CLOSING}{{0,4}}\s{{0,64}}"
    rf"|(?<=[{_STOP}])[{_STOP}]{{0,7}}{_CLOSING}{{0,4}}\s{{1,64}})"
    r"|(?P<LINE>(?<=\n)\s{0,64})"
    rf"|(?P<CLAUSE>(?<=[{_WIDE_COMMA}])|(?<=[{_COMMA}])\s{{1,64}})"
    r"|(?P<WORD>(?<=\s)\s{0,63}))"
)
_REACH = 32
"""How far a cut is moved to avoid splitting a combined character; then it is split anyway."""
_JOINERS = "\u200d\ufe0e\ufe0f"


_BLANK = _BREAK.groupindex["BLANK"]
"""A single blank between words, the most common break: a fast path."""
_STRENGTHS = [
    CutStrength.NONE,
    CutStrength.WORD,
    *(CutStrength[name] for name in [*_BREAK.groupindex][1:]),
]
"""Strength by number of the matching group."""


class Boundaries:
    """The boundaries of one text. Spans in `keep` are never cut."""

    def __init__(
        self, text: str, headings: Iterable[int] = (), keep: Iterable[tuple[int, int]] = ()
    ) -> None:
        self._text = text
        self._keep = sorted(keep)
        # Arrays, because a long book has millions of them.
        self._offsets = array("I")
        self._strengths = bytearray()
        add_offset, add_strength = self._offsets.append, self._strengths.append
        for match in _BREAK.finditer(text):
            add_offset(match.end())
            group = match.lastindex or 0
            if group != _BLANK and text.count("\n", *match.span()) > 1:
                add_strength(CutStrength.PARAGRAPH)
            else:
                add_strength(_STRENGTHS[group])
        if self._offsets and self._offsets[-1] == len(text):
            self._offsets.pop()
            self._strengths.pop()
        for at in headings:
            self._add_heading(at)
        if self._keep:
            self._spare_kept()

    def _add_heading(self, at: int) -> None:
        if 0 < at < len(self._text):
            index = bisect_left(self._offsets, at)
            if self._offsets[index : index + 1] != array("I", [at]):  # seldom: they begin lines
                self._offsets.insert(index, at)
                self._strengths.insert(index, CutStrength.HEADING)
            self._strengths[index] = CutStrength.HEADING

    def _spare_kept(self) -> None:
        outside = [
            (at, strength)
            for at, strength in zip(self._offsets, self._strengths, strict=True)
            if self._uncut(at) == at
        ]
        self._offsets = array("I", (at for at, _ in outside))
        self._strengths = bytearray(strength for _, strength in outside)

    def strength(self, at: int) -> int:
        """Return the `CutStrength`, as a number because many are compared."""
        index = bisect_left(self._offsets, at)
        if index < len(self._offsets) and self._offsets[index] == at:
            return self._strengths[index]
        return CutStrength.NONE

    def strong(self) -> Iterator[int]:
        """Offsets of line ends and stronger boundaries."""
        return compress(self._offsets, map(int(CutStrength.LINE).__le__, self._strengths))

    def middle(self, start: int, end: int) -> int | None:
        """Find the best place to split `start` to `end`, near the middle; None if there is none."""
        centre, quarter = (start + end) // 2, (end - start) // 4
        first = bisect_right(self._offsets, max(start, centre - quarter))
        last = bisect_left(self._offsets, min(end, centre + quarter + 1))
        best = max(
            range(first, last),
            key=lambda index: (self._strengths[index], -abs(self._offsets[index] - centre)),
            default=None,
        )
        if best is None:
            return self._between_characters(start, end, centre)
        return self._offsets[best]

    def _between_characters(self, start: int, end: int, centre: int) -> int | None:
        for distance in range(_REACH):
            for at in (centre - distance, centre + distance):
                if start < at < end and self._uncut(at) == at and not self._joined(at):
                    return at
        if end - start <= _REACH:
            return None
        # A character of a hundred marks, or a kept span: the nearest place that spares the latter.
        for at in (centre, self._uncut(centre), self._uncut(centre, end=True)):
            if start < at < end and self._uncut(at) == at:
                return at
        return None

    def _uncut(self, at: int, *, end: bool = False) -> int:
        """Return `at`, or the start (or end) of the kept span that it would split."""
        index = bisect_left(self._keep, (at,)) - 1
        if index >= 0 and self._keep[index][0] < at < self._keep[index][1]:
            return self._keep[index][end]
        return at

    def _joined(self, at: int) -> bool:
        """Whether the characters around `at` are displayed as one."""
        before, after = self._text[at - 1], self._text[at]
        if after.isascii():
            return before == "\u200d" or (before == "\r" and after == "\n")
        return (
            after in _JOINERS
            or before == "\u200d"
            or unicodedata.category(after).startswith("M")
            or "\U0001f3fb" <= after <= "\U0001f3ff"  # colour of skin
            or ("\u1160" <= after <= "\u11ff")  # vowels and endings of Korean syllables
            or ("\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff")
        )
