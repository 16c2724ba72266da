"""Passport numbers. They have no check digit, so a word must identify them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.context import LAST, words
from penstock.documents.pii.kinds import Kind, PiiSpan

# Korea M12345678 or M123A4567, Japan TK1234567; most others one or two letters and digits, or
# nine digits.
_SHAPE = re.compile(
    r"(?<![0-9A-Za-z])(?<![0-9][-.])"
    r"(?:[A-Za-z] ?[0-9]{7,8}|[A-Za-z][0-9]{3}[A-Za-z][0-9]{4}|[A-Za-z]{2} ?[0-9]{6,7}|[0-9]{9})"
    + LAST
)
WORDS = words("passport パスポート 旅券 여권")
_BEFORE, _AFTER = 30, 45
"""How far from the word its number may start, before and after it."""
_LONGEST = 16
"""Maximum length of a passport number, with one character after it."""


def find_passports(text: str) -> Iterator[PiiSpan]:
    """Find passport numbers around each such word: the words are few, numbers of this shape
    many."""
    for word in WORDS.finditer(text):
        start, end = max(0, word.start() - _BEFORE), word.end() + _AFTER
        for match in _SHAPE.finditer(text, start, end + _LONGEST):
            if match.start() <= end:
                yield PiiSpan(*match.span(), Kind.PASSPORT)
