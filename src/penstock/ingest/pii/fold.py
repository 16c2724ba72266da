"""Text as the finders read it: full-width signs, other digits, dashes and spaces made ASCII.

Each character becomes one character, so offsets stay true. The exceptions are characters nobody
sees (soft hyphens, zero-width joiners): they would hide a number from every pattern, so they are
taken out and `Folded.original` puts offsets right.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import NamedTuple

_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
# The mark of a long vowel is typed for a hyphen between full-width digits.
_LONG_VOWEL = re.compile("[\u30fc\uff70](?<=[0-9].)(?=[0-9])")
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"


def _table() -> dict[int, int]:
    table = {
        code: ord("0") + unicodedata.digit(chr(code))
        for code in range(0x80, 0x10000)
        if unicodedata.category(chr(code)) == "Nd"
    }
    table |= {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    table |= dict.fromkeys(map(ord, _DASHES), ord("-"))
    table |= dict.fromkeys(map(ord, _SPACES), ord(" "))
    table[0xFE6B] = ord("@")
    return table


_TABLE = {chr(code): chr(to) for code, to in _table().items()}
# Few characters need folding. Finding those is five times faster than translating all.
_FOLDABLE = re.compile(f"[{''.join(_TABLE)}]")


class Folded(NamedTuple):
    text: str
    removed: list[int]
    """For each character taken out: the offset in `text` before which it stood."""

    def original(self, offset: int) -> int:
        """Where the character at `offset` of `text` stands in what was folded."""
        return offset + bisect_right(self.removed, offset)


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text, [])
    removed = [match.start() - index for index, match in enumerate(_INVISIBLE.finditer(text))]
    if removed:
        text = _INVISIBLE.sub("", text)
    return Folded(
        _LONG_VOWEL.sub("-", _FOLDABLE.sub(lambda match: _TABLE[match[0]], text)), removed
    )
