"""Driving licence numbers. Only the British one tells by its form what it is; of others, each
country and each of the United States has its own, so a word must say what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.context import LAST, words
from penstock.documents.pii.kinds import Kind, PiiSpan

# Five letters of the name filled up by 9; decade, month (50 more for women), day and year of birth;
# initials, and three signs that tell people apart. An issue number may follow.
_BRITISH = re.compile(
    r"[A-Z](?<![0-9A-Za-z][A-Z])(?=[A-Z9]{4}[0-9])[A-Z]*9*[0-9]"
    r"(?:[05][1-9]|[16][0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9][A-Z9]{2}[0-9A-Z][A-Z]{2}"
    r"(?: ?[0-9]{2})?(?![0-9A-Za-z])"
)
_BRITISH_LENGTHS = (16, 18, 19)

_HINTS = words(
    "driver drivers driving dl dln dl# führerschein Führerschein FÜHRERSCHEIN fahrerlaubnis permis"
    " 運転免許 免許証番号 免許番号 운전면허 면허번호"
)
"""A fast pre-check; LABEL decides."""
LABEL = re.compile(
    r"(?i:driv(?:er|ing)(?:['\u2019]?s|s['\u2019])?[ -]?licen[cs]es?"
    r"|(?<![a-z])dln?(?: ?#| ?(?:no\b|num\b|number))"
    r"|führerschein|fahrerlaubnis|permis de conduire)"
    r"|運転免許|免許証番号|免許番号|운전면허|면허번호"
)
_SHAPE = re.compile(
    r"(?<![0-9A-Za-z])(?<![0-9][-.])(?:"
    r"[A-Z]{1,2}[- ]?[0-9]{5,9}"  # California A1234567, Colorado, Ohio and others
    r"|[A-Z][0-9]{2,4}(?:[- ][0-9]{2,6}){1,4}(?:-[0-9])?|[A-Z][0-9]{10,14}"  # Florida, Illinois ...
    r"|WDL[0-9A-Z]{9}"  # Washington
    r"|[A-Z][0-9]{3}[0-9A-Z]{5}[0-9X][0-9A-Z]"  # Germany
    r"|[0-9]{2}[A-Z]{2}[0-9]{5}"  # France
    r"|[0-9]{2}-[0-9]{2}-[0-9]{6}-[0-9]{2}"  # Korea
    r")" + LAST
)
_BEFORE, _AFTER, _LONGEST = 30, 45, 24
"""How far from the word a number with letters may start, and its maximum length, including gaps."""
# Digits alone, of New York, Texas, France, Japan and others: right behind the word.
_DIGITS = re.compile(
    r"(?:e?s?nummer| ?(?:number|no|nr|num|id|card)|証|証番号|番号|증|증번호|번호| ?번호)?"
    r"(?:は|が|는|은|이| is| was| lautet| est)?[ .:#=()n°\"'「」]{0,5}"
    r"(?P<number>[0-9]{7,12}|[0-9]{3}([- ])[0-9]{3}\2[0-9]{3})" + LAST,
    re.IGNORECASE,
)


def find_driving_licences(text: str) -> Iterator[PiiSpan]:
    for match in _BRITISH.finditer(text):
        if len(match[0]) in _BRITISH_LENGTHS:
            yield PiiSpan(*match.span(), Kind.DRIVING_LICENCE)
    for hint in _HINTS.finditer(text):
        label = LABEL.match(text, hint.start())
        if label is None:
            continue
        start, end = max(0, label.start() - _BEFORE), label.end() + _AFTER
        for match in _SHAPE.finditer(text, start, end + _LONGEST):
            if match.start() <= end:
                yield PiiSpan(*match.span(), Kind.DRIVING_LICENCE)
        if digits := _DIGITS.match(text, label.end()):
            yield PiiSpan(*digits.span("number"), Kind.DRIVING_LICENCE)
