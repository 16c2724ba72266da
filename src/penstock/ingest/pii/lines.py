"""Numbers whose groups go on in the next line, as text does when it is wrapped.

What breaks behind a hyphen was put together before (fold.py). Where only blanks are between groups,
rows of a table look the same, so what is around the break decides whether the finders are shown the
two lines as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.ingest.pii.card import find_cards
from penstock.ingest.pii.iban import find_ibans
from penstock.ingest.pii.person import find_my_numbers, find_resident_numbers
from penstock.ingest.pii.phone import find_phones
from penstock.ingest.pii.span import Finder, Span

_FINDERS: tuple[Finder, ...] = (
    find_ibans,
    find_cards,
    find_resident_numbers,
    find_my_numbers,
    find_phones,
)
_BREAK = re.compile(r"\n(?<=[0-9]\n)(?=[0-9])")
_REACH = 34
"""No number is longer, its gaps included."""
_BEFORE = re.compile(r"(?:[0-9A-Z]{1,13}[ .()+-]{1,2}){0,8}[0-9]{1,13}\Z")
_AFTER = re.compile(r"[0-9]{1,13}(?:[ .()-]{1,2}[0-9]{1,13}){0,8}")
_DIGITS = range(9, 35)
_CELLS = ",;|\t"
_CONTEXT = 60
"""How far words reach that say what a number is."""


def find_over_lines(text: str) -> Iterator[Span]:
    for match in _BREAK.finditer(text):
        at = match.start()
        if not _is_wrapped(text, at):
            continue
        start = max(0, at - _CONTEXT)
        shown = f"{text[start:at]} {text[at + 1 : at + _CONTEXT]}"
        for find in _FINDERS:
            for first, last, kind in find(shown):
                if first + start < at < last + start:
                    yield Span(first + start, last + start, kind)


def _is_wrapped(text: str, at: int) -> bool:
    """Whether a number may go on over the end of this line: it is long enough, and in words or
    alone. Lines of nothing but numbers are a table if there are more than two of them."""
    least, most = max(0, at - _REACH), at + 1 + _REACH
    before, after = _BEFORE.search(text, least, at), _AFTER.match(text, at + 1, most)
    if before is None or after is None:
        return False
    if (least and before.start() < least + 3) or after.end() > most - 3:  # a row goes on there
        return False
    if sum(map(str.isdigit, before[0] + after[0])) not in _DIGITS:
        return False
    ahead, behind = text[max(0, before.start() - 2) : before.start()], text[after.end() : after.end() + 2]
    if ahead[-1:] in tuple(_CELLS) or behind[:1] in tuple(_CELLS):
        return False
    in_words = ahead[-1:] not in ("", "\n") or behind[:1] not in ("", "\n")
    return in_words or not (ahead[:1].isdigit() or behind[1:].isdigit())
