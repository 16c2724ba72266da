"""Numbers whose groups go on in the next line, as text does when it is wrapped.

What breaks behind a hyphen was put together before (fold.py). Where only blanks are between groups,
rows of a table look the same, so what is around the break decides whether the finders are shown the
two lines as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.card import find_cards
from penstock.documents.pii.iban import find_ibans
from penstock.documents.pii.kinds import Finder, PiiSpan
from penstock.documents.pii.national_id import find_my_numbers, find_resident_numbers
from penstock.documents.pii.phone import find_phones
from penstock.documents.pii.social_security import find_social_security_numbers

_FINDERS: tuple[Finder, ...] = (
    find_ibans,
    find_cards,
    find_resident_numbers,
    find_my_numbers,
    find_social_security_numbers,
    find_phones,
)
_ENDS = tuple(end + "\n" for end in ("", " ", "\r", " \r"))
"""Ends of lines: mail that flows (RFC 3676) has a blank before them."""
# What goes on with another line of numbers, as most tables do, is no match: most of this is decided
# here, where it costs least.
_BREAK = re.compile(
    rf"\n(?:{'|'.join(f'(?<=[0-9]{{2}}{end})' for end in _ENDS)})"
    + "".join(f"(?<![-.,:/][0-9]{{2}}{end})" for end in _ENDS)
    + r"(?=([ \t]{0,8})([0-9](?:[0-9 ()]{0,30}[0-9])?)"
    r"(?![0-9]| [0-9]|[-.,:/][0-9]|[;|\t]|,(?! )| ?\r?\n[ \t]{0,8}[0-9]))"
)
_BEFORE = re.compile(r"(?:[0-9A-Z+(]{1,13}[ )]{1,2}){0,8}[0-9]{2,13}\Z")
_REACH = 34
"""Maximum length of a number, including its gaps."""
_DIGITS = range(9, 35)
_NO_WORDS = ("", "\n")
_CONTEXT = 60
"""Reach of words that identify a number."""


def find_over_lines(text: str) -> Iterator[PiiSpan]:
    for match in _BREAK.finditer(text):
        end = match.start()
        end -= text[end - 1] == "\r"
        end -= text[end - 1] == " "
        if not _is_wrapped(text, end, *match.span(2), indented=bool(match[1])):
            continue
        start, goes_on = max(0, end - _CONTEXT), match.start(2)
        gap = goes_on - end - 1
        shown = f"{text[start:end]} {text[goes_on : goes_on + _CONTEXT]}"
        for find in _FINDERS:
            for first, last, kind in find(shown):
                if first + start < end < last + start:
                    yield PiiSpan(first + start, last + start + gap, kind)


def _is_wrapped(text: str, at: int, goes_on: int, end: int, *, indented: bool) -> bool:
    """Whether a number may continue in the next line, up to `end`: it is long enough, and in prose
    or alone. More than two lines of only numbers are a table, and so are two that are indented."""
    least = max(0, at - _REACH)
    before = _BEFORE.search(text, least, at)
    if before is None or (least and before.start() < least + 3):  # or a row that began earlier
        return False
    start = before.start()
    if sum(map(str.isdigit, before[0] + text[goes_on:end])) not in _DIGITS:
        return False
    if indented and not text[text.rfind("\n", 0, start) + 1 : start].strip():
        return False
    ahead = text[max(0, start - 2) : start]
    if ahead[-1:] in tuple("-./,;|\t"):
        return False
    alone = ahead[-1:] in _NO_WORDS and text[end : end + 1] in _NO_WORDS
    return not (alone and ahead[:1].isdigit())
