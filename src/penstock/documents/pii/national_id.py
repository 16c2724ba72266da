"""Numbers a state gives a person: the Korean resident number, the Japanese My Number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from penstock.documents.pii.context import LAST, WordPositions, first, in_prose, in_row, words
from penstock.documents.pii.kinds import Kind, PiiSpan

_RESIDENT = re.compile(
    first("0-9")
    + r"(?<!\+[0-9])"  # coordinates: +340308-1181434
    + r"[0-9](?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    r"(?P<gap> ?- ?| {1,2})?(?P<gender>[1-8])(?:[0-9]{6}|[*]{6})" + LAST
)
RESIDENT_WORDS = words("주민 등록번호 등록증 외국인 rrn resident registration 住民 登録番号 外国人")
_RESIDENT_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)

_MY_NUMBER = re.compile(
    first("0-9") + r"[0-9]{3}(?:([- ]|  | - )[0-9]{4}\1[0-9]{4}|[0-9]{8})" + LAST
)
MY_NUMBER_WORDS = words(
    "マイナンバ マイナカード 個人番号 mynumber my_number 마이넘버 개인번호",
    "my number",
    "My Number",
    "individual number",
    "마이 넘버",
    "개인 번호",
)
_MY_NUMBER_WEIGHTS = (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)


def find_resident_numbers(text: str) -> Iterator[PiiSpan]:
    """Date of birth and gender digit decide: numbers given since October 2020 have no check digit.

    Thirteen digits without a hyphen are also what clocks and bar codes print. They need a word that
    says so, or the check digit of the older numbers and not that of bar codes.
    """
    named = WordPositions(RESIDENT_WORDS, text)
    for match in _RESIDENT.finditer(text):
        gap, gender = match["gap"], match["gender"]
        century = "19" if gender in "1256" else "20"
        if not _is_date(century + match[0][:6]):
            continue
        if (
            (gap and "-" in gap)
            or named.near(*match.span())
            or (not gap and _stands_alone(text, match))
        ):
            yield PiiSpan(*match.span(), Kind.RESIDENT_NUMBER)


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Whether digits without a gap and a word are a resident number. Those that start with 1 are
    timestamps in milliseconds, from 2001 to 2033."""
    digits = match[0]
    return digits[0] != "1" and _resident_check(digits) and not in_row(text, *match.span())


def _is_date(digits: str) -> bool:
    try:
        date.fromisoformat(digits)
    except ValueError:
        return False
    return True


def _resident_check(digits: str) -> bool:
    if not digits.isdigit():
        return False
    total = sum(
        int(digit) * weight for digit, weight in zip(digits, _RESIDENT_WEIGHTS, strict=False)
    )
    bar_code = sum(map(int, digits[::2])) + 3 * sum(map(int, digits[1::2]))
    return (11 - total % 11) % 10 == int(digits[12]) and bar_code % 10 != 0


def find_my_numbers(text: str) -> Iterator[PiiSpan]:
    """Find twelve digits with a check digit, which one number in ten has by chance: unless hyphens
    group it, a word must announce it or it must be part of a sentence without a gap."""
    named = WordPositions(MY_NUMBER_WORDS, text)
    for match in _MY_NUMBER.finditer(text):
        start, end = match.span()
        digits = match[0].replace(" ", "").replace("-", "")
        if not _my_number_check(digits):
            continue
        gap = (match[1] or "").strip() or match[1]
        loose = gap == " " and in_prose(text, start, end) and not in_row(text, start, end)
        if gap == "-" or loose or named.near(start, end):
            yield PiiSpan(start, end, Kind.MY_NUMBER)


def _my_number_check(digits: str) -> bool:
    total = sum(
        int(digit) * weight for digit, weight in zip(digits, _MY_NUMBER_WEIGHTS, strict=False)
    )
    remainder = total % 11
    return int(digits[11]) == (0 if remainder <= 1 else 11 - remainder)
