"""Columns of tables: the head of a column says what the numbers below it are.

The other finders look for a word near a number. In a table of a thousand rows it is near the first
few only, so here each cell is read under its head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii import account, card, licence, passport, phone, social_security
from penstock.documents.pii import national_id as person
from penstock.documents.pii.kinds import Kind, PiiSpan

_SHAPES = (
    (Kind.CARD, card.WORDS, re.compile(r"(?:[0-9][ -]?){13,18}[0-9]")),
    (Kind.RESIDENT_NUMBER, person.RESIDENT_WORDS, re.compile(r"[0-9]{6}[ -]?[1-8][0-9]{6}")),
    (Kind.MY_NUMBER, person.MY_NUMBER_WORDS, re.compile(r"(?:[0-9]{4}[ -]?){2}[0-9]{4}")),
    (Kind.SSN, social_security.WORDS, re.compile(r"[0-8][0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{4}")),
    (
        Kind.DRIVING_LICENCE,
        licence.LABEL,
        re.compile(r"(?=.*[0-9]{2})[0-9A-Z](?:[ -]?[0-9A-Z]){6,18}"),
    ),
    (Kind.PASSPORT, passport.WORDS, re.compile(r"[A-Za-z]{0,2}[0-9]{3,4}[0-9A-Za-z][0-9]{2,4}")),
    (Kind.PHONE, phone.WORDS, re.compile(r"[+(]?[0-9](?:[ ().-]{0,2}[0-9]){6,14}")),
    (Kind.BANK_ACCOUNT, account.WORDS, re.compile(r"[0-9](?:-?[0-9]){4,19}")),
)
_DELIMITERS = "|\t,;"
_DELIMITED = re.compile(f"[{_DELIMITERS}]")
_HEAD_MOST = 40
_COLUMNS_MOST = 1_000
_EDGES = " \"'\r"

Column = tuple[Kind, re.Pattern[str]]


def find_in_columns(text: str) -> Iterator[PiiSpan]:
    """Find columns: the first of several lines with the same delimiter is their header, whatever is
    above it."""
    delimiter = ""
    columns: dict[int, Column] = {}
    start = 0
    while ahead := _DELIMITED.search(text, start):
        if (skipped := text.rfind("\n", start, ahead.start())) >= 0:
            start, delimiter = skipped + 1, ""
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not delimiter or text.find(delimiter, start, end) < 0:
            delimiter = max(_DELIMITERS, key=lambda sign: text.count(sign, start, end))
            columns = dict(_heads(text, start, end, delimiter))
        elif columns:
            yield from _row(text, start, end, delimiter, columns)
        start = end + 1


def _heads(text: str, start: int, end: int, delimiter: str) -> Iterator[tuple[int, Column]]:
    for index, (first, last) in enumerate(_cells(text, start, end, delimiter)):
        head = text[first:last]
        if len(head) > _HEAD_MOST or any(sign.isdigit() for sign in head):
            continue
        for kind, words, shape in _SHAPES:
            if words.search(head):
                yield index, (kind, shape)
                break


def _row(
    text: str, start: int, end: int, delimiter: str, columns: dict[int, Column]
) -> Iterator[PiiSpan]:
    for index, (first, last) in enumerate(_cells(text, start, end, delimiter)):
        if index in columns:
            kind, shape = columns[index]
            if shape.fullmatch(text, first, last):
                yield PiiSpan(first, last, kind)


def _cells(text: str, start: int, end: int, delimiter: str) -> Iterator[tuple[int, int]]:
    """Spans of the cells of a line, without surrounding blanks and quotes."""
    for _ in range(_COLUMNS_MOST):
        stop = _stop(text, start, end, delimiter)
        first, last = start, stop
        while first < last and text[first] in _EDGES:
            first += 1
        while first < last and text[last - 1] in _EDGES:
            last -= 1
        yield first, last
        if stop >= end:
            return
        start = stop + 1


def _stop(text: str, start: int, end: int, delimiter: str) -> int:
    """Return the end of the cell that starts at `start`. Delimiters inside closed quotes do not
    count."""
    if text.startswith('"', start):
        closing = text.find('"', start + 1, end)
        if closing > 0:
            start = closing
    stop = text.find(delimiter, start, end)
    return end if stop < 0 else stop
