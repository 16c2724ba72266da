"""Text as the finders read it: full-width signs, other digits, dashes and spaces made ASCII.

Each character becomes one character, so offsets stay true. The exceptions would hide a number from
every pattern, so they are taken out and `Folded.original` puts offsets right: characters nobody
sees (soft hyphens, zero-width joiners), and ends of lines inside of a number or an address.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from functools import cache
from typing import NamedTuple

# What Unicode calls default-ignorable, and the frame that makes a key of a digit.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e3"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
)
_INVISIBLE_BEYOND = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
# The mark of a long vowel is typed for a hyphen between full-width digits.
_LONG_VOWEL = re.compile("[\u30fc\uff70](?<=[0-9].)(?=[0-9])")
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"


# An end of a line behind a hyphen between digits, behind an @, or before the last part of a host.
# It opens with the one sign that is rare: any other pattern would look at every character.
_BROKEN = re.compile(
    r"\n(?:(?:(?<=[0-9]-\n)|(?<=[0-9]-\r\n)|(?<=[0-9]- \n))[ \t]{0,8}(?=[0-9])"
    r"|(?:(?<=[^\s@]@\n)|(?<=[^\s@]@\r\n))[ \t]{0,8}(?=\w)"
    r"|(?<=\w\.\n)(?=(?:com|org|net|edu|gov|info|jp|kr|de|fr|uk|ch|nl|eu)(?!\w)))"
)
_HOST_BEFORE = re.compile(r"@[\w-]{1,63}\.\Z")


def _table() -> dict[int, int]:
    some = "".join(map(chr, range(0x80, 0x20000)))
    table = {ord(sign): ord("0") + unicodedata.digit(sign) for sign in re.findall(r"\d", some)}
    table |= {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    for code in range(0x1D400, 0x1D6A4):  # letters of formulas
        plain = unicodedata.normalize("NFKC", chr(code))
        table |= {code: ord(plain)} if plain.isascii() else {}
    table |= dict.fromkeys(map(ord, _DASHES), ord("-"))
    table |= dict.fromkeys(map(ord, _SPACES), ord(" "))
    table[0xFE6B] = ord("@")
    return table


_FOLDABLE_BEYOND = "\U00010400-\U0001efff\U0001fbf0-\U0001fbf9"


class _Signs(NamedTuple):
    """Characters that need folding. They are few, and finding them is five times faster than
    translating all."""

    invisible: re.Pattern[str]
    foldable: re.Pattern[str]
    table: dict[str, str]


@cache
def _signs(beyond: bool) -> _Signs:
    """Build the tables on demand: that takes longer than a whole page of ASCII."""
    table = {chr(code): chr(to) for code, to in _table().items()}
    foldable = "".join(sign for sign in table if sign <= "\uffff")
    # What is beyond \uffff is looked for in ranges, one by one, and in few texts at all.
    more = (_INVISIBLE_BEYOND, _FOLDABLE_BEYOND) if beyond else ("", "")
    return _Signs(
        re.compile(f"[{_INVISIBLE}{more[0]}]"), re.compile(f"[{foldable}{more[1]}]"), table
    )


class Folded(NamedTuple):
    text: str
    removed: list[int]
    """Offsets in `text` before which a character was removed."""

    def original(self, offset: int) -> int:
        """Map an offset of `text` to the original."""
        return offset + bisect_right(self.removed, offset)


def fold(text: str) -> Folded:
    removed: list[int] = []
    if not text.isascii():
        wide = len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text)
        invisible, foldable, table = _signs(wide)
        removed = [match.start() - index for index, match in enumerate(invisible.finditer(text))]
        if removed:
            text = invisible.sub("", text)
        text = foldable.sub(lambda match: table.get(match[0], match[0]), text)
        text = _LONG_VOWEL.sub("-", text)
    return _joined(text, removed)


def _joined(text: str, removed: list[int]) -> Folded:
    """Remove line breaks that split a number or an address."""
    pieces: list[str] = []
    gone: list[int] = []
    done = 0
    for match in _BROKEN.finditer(text):
        start, end = match.span()
        if text[start - 1] == "." and not _HOST_BEFORE.search(text, max(0, start - 66), start):
            continue
        while text[start - 1] in " \r":
            start -= 1
        pieces.append(text[done:start])
        gone += range(start, end)
        done = end
    if not gone:
        return Folded(text, removed)
    pieces.append(text[done:])
    removed = [offset - bisect_left(gone, offset) for offset in removed]
    removed += [offset - index for index, offset in enumerate(gone)]
    return Folded("".join(pieces), sorted(removed))
