"""Social security numbers of the United States. They have no check digit, but numbers that are
never given out: area 000, 666 and from 900 on, group 00, serial 0000."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.context import LAST, WordPositions, calls_part, goes_on, words
from penstock.documents.pii.kinds import Kind, PiiSpan

_SHAPE = re.compile(
    r"[0-8](?:(?<=[Ss][Ss][Nn][0-8])|(?<![0-9A-Za-z+][0-8])(?<![0-9][-.][0-8]))"
    r"[0-9]{2}(?P<gap>[- ]| - )?(?!00)[0-9]{2}(?(gap)(?P=gap))(?!0000)[0-9]{4}" + LAST
)
_NEVER = ("000", "666")
WORDS = words("ssn ssns 社会保障番号 사회보장번호", "social security", "Social Security")
# Digits alone are one only right behind a word that says so.
_LABEL = re.compile(
    r"(?:(?i:(?<![a-z])ssns?|social security|soc\.? sec\.?)(?: ?(?i:numbers?|nos?|num|#))?"
    r"|社会保障番号|사회보장번호)(?:は|が|는|은|이| is| was)?[ .:#=()\"']{0,4}\Z"
)
_LABEL_REACH = 40


def find_social_security_numbers(text: str) -> Iterator[PiiSpan]:
    """Find social security numbers. With hyphens a number stands alone, unless it is announced as,
    or listed after, a part number; with blanks a word must be near, and without either a word must
    precede it."""
    named = WordPositions(WORDS, text)
    part = -1
    for match in _SHAPE.finditer(text):
        start, end = match.span()
        if match[0].startswith(_NEVER):
            continue
        gap = match["gap"] or ""
        if not gap:
            said = _LABEL.search(text, max(0, start - _LABEL_REACH), start) is not None
        elif "-" not in gap:
            said = named.near(start, end)
        elif (part >= 0 and goes_on(text, part, start)) or calls_part(text, start):
            said = named.near(start, end, before=12, after=0)
            part = -1 if said else end
        else:
            said = True
        if said:
            yield PiiSpan(start, end, Kind.SSN)
