"""Telephone numbers: international, Korean, Japanese, and the North American, German and French
forms.

A number with its country's code or a mobile prefix stands by itself. Other national numbers need
the grouping people write them in; bare digits need a word that says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.context import (
    WordPositions,
    beside,
    calls_part,
    goes_on,
    in_prose,
    in_row,
    words,
)
from penstock.documents.pii.kinds import Kind, PiiSpan


def _first(signs: str) -> str:
    """Like `near.first`, but "TEL03-..." has no gap."""
    return (
        rf"[{signs}](?:(?<=[Tt][Ee][Ll][{signs}])|(?<=[Ff][Aa][Xx][{signs}])"
        rf"|(?<![0-9A-Za-z][{signs}])(?<![0-9][-.][{signs}]))"
    )


_LAST = r"(?![0-9A-WYZa-wyz])(?![-.][0-9])"  # x45: an extension
_GAP = r"(?:[-. ]|  | ?- ?)"

_MOBILE = re.compile(
    _first("0(")
    + rf"(?:(?<=0)1[016789]{_GAP}?|(?<=\()01[016789]\) ?)[0-9]{{3,4}}{_GAP}?[0-9]{{4}}"
    + _LAST
)
_BARE_MOBILE = re.compile(_first("0") + r"[5-9]0[0-9]{8}" + _LAST)
_NATIONAL = re.compile(
    _first("0(")
    + r"(?:(?<=0)|0(?=[0-9]{1,4}\)))([1-9][0-9]{0,3})"
    + rf"(?:\) ?|{_GAP}|(?= ?\()) ?\(?([0-9]{{1,4}})(?:\) ?|{_GAP})([0-9]{{3,4}})"
    + _LAST
)
# No area code of two digits begins otherwise than with 0: these are numbers of parts.
_part_beside = beside(r"[1-9][0-9]-[0-9]{3,4}-[0-9]{4}", 12)
_SERVICES = re.compile(r"120|570|800|990")
_NORTH_AMERICAN = re.compile(
    _first("(1-9")
    + r"(?:(?<=1)[-. ][(2-9])?(?:(?<=\()[2-9][0-9]{2}\) ?[2-9][0-9]{2}[-. ]"
    + r"|(?<=[2-9])[0-9]{2}(?P<gap>[-.])[2-9][0-9]{2}(?P=gap))[0-9]{4}"
    + _LAST
)
# No area is N11, N9x, 37x or 96x, and no exchange N11.
_UNASSIGNED = re.compile(r".11|.9|37|96|....11")
# 0171/1234567, 030/123 456-78; a mobile's prefix may be set apart otherwise
_SLASHED = re.compile(
    _first("0")
    + r"(?:1[5-7][0-9]{1,2}(?: ?/ ?|[- ])|[1-9][0-9]{1,4} ?/ ?)"
    + r"(?:[0-9]{5,9}(?:-[0-9]{1,5})?|[0-9]{2,4}(?:[ -][0-9]{2,4}){1,4})(?!/)"
    + _LAST
)
_SLASHED_DIGITS = range(10, 14)
# 06.12.34.56.78
_PAIRS = re.compile(
    _first("0") + r"[1-9](?P<gap>[-. ])[0-9]{2}(?:(?P=gap)[0-9]{2}){3}(?![-.][A-Za-z])" + _LAST
)
_BARE = re.compile(
    _first("0-9")
    + r"(?:(?<=0)[0-9]{8,10}|(?<=1)[568][0-9]{2}[- ][0-9]{4}"
    + r"|(?<=[2-9])[0-9]{2}(?:[-. ][0-9]{3,4}[-. ]?[0-9]{4}|-[0-9]{4}|[0-9]{7}))"
    + _LAST
)
WORDS = words(
    "tel telephone phone cellphone smartphone mobil cell fax call dial sms whatsapp"
    " telefon rufnummer tél Tél TÉL"
    " 電話 携帯 連絡先 ファックス ファクス ケータイ フリーダイヤル ☎ 📞 ℡"
    " 전화 휴대 핸드폰 연락처 팩스 콜센터 고객센터 대표번호"
)

_ABROAD = re.compile(
    r"[+0](?<![0-9A-Za-z+][+0])(?<![0-9][-.][+0])"
    r"(?:(?<=\+) ?(?=[1-9])|(?<=0)0(?=[1-9][0-9]{0,2}[- ][0-9(]))"
)
_CODE = re.compile(
    r"1(?=[ (.-]{0,2}[2-9])|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]"
    r"|42[013]|(?:2[1-69]|3[578]|5[09]|6[7-9]|8[0578]|9[679])[0-9]"
)
_GROUP = re.compile(r"(?: ?[-.] ?| ?\(|\) ?-?|\)\(| {1,2})?([0-9]{1,12})")
# 00 may open a row of a table; coordinates are written +4339-07923 or +340308-1181434.
_NO_PHONE = re.compile(r"[0-9]{4}(?: [0-9]{4})+|\+[0-9]{4}-[01][0-9]{4}|\+[0-9]{6}-[01][0-9]{6}")
_GOES_ON = re.compile(r"[0-9A-WYZa-wyz*^]")  # as a word, or as what is calculated
# How many digits follow the country's code, where it is known better than "7 to 12".
_LENGTHS = {"1": (10, 10), "81": (9, 11), "82": (8, 11)}


def find_phones(text: str) -> Iterator[PiiSpan]:
    named = WordPositions(WORDS, text)
    yield from _abroad(text, named)
    for match in _MOBILE.finditer(text):
        # Ten digits without gaps are one short of a mobile number.
        if not (match[0].isdigit() and len(match[0]) == 10):
            yield PiiSpan(*match.span(), Kind.PHONE)
    for match in _BARE_MOBILE.finditer(text):
        yield PiiSpan(*match.span(), Kind.PHONE)
    for match in _NATIONAL.finditer(text):
        if _is_national(text, match, named):
            yield PiiSpan(*match.span(), Kind.PHONE)
    yield from _north_american(text, named)
    yield from _slashed(text, named)
    for match in _PAIRS.finditer(text):
        if match["gap"] != " " or named.near(*match.span(), after=0):
            yield PiiSpan(*match.span(), Kind.PHONE)
    for match in _BARE.finditer(text):
        if named.near(*match.span(), before=24, after=0):
            yield PiiSpan(*match.span(), Kind.PHONE)


def _is_national(text: str, match: re.Match[str], named: WordPositions) -> bool:
    area, exchange, rest = match.groups()
    digits = 1 + len(area) + len(exchange) + len(rest)
    # Nine digits is Seoul only; three at the end only behind the prefixes of services.
    if digits not in (10, 11) and not (digits == 9 and area == "2"):
        return False
    if len(rest) == 3 and not _SERVICES.match(area):
        return False
    if len(exchange) == 1 and len(area) < 3:
        return False
    if "." in match[0] and (" " in match[0] or "-" in match[0]):
        return False
    if len(area) == 1 and _part_beside(text, *match.span()):
        return named.near(*match.span(), after=0)
    if "-" in match[0] or ")" in match[0] or named.near(*match.span(), after=0):
        return True
    return in_prose(text, *match.span()) or not in_row(text, *match.span())


def _north_american(text: str, named: WordPositions) -> Iterator[PiiSpan]:
    """Find North American numbers. Part numbers are grouped the same way: one that is announced as
    such, or listed after one that is, is not a phone number."""
    part = -1
    for match in _NORTH_AMERICAN.finditer(text):
        start, end = match.span()
        listed = part >= 0 and goes_on(text, part, start)
        digits = "".join(filter(str.isdigit, match[0]))[-10:]
        if _UNASSIGNED.match(digits) and not named.near(start, end, after=0):
            continue
        if (listed or calls_part(text, start)) and not named.near(start, end, before=12, after=0):
            part = end
        else:
            yield PiiSpan(start, end, Kind.PHONE)


def _slashed(text: str, named: WordPositions) -> Iterator[PiiSpan]:
    for match in _SLASHED.finditer(text):
        shape = match[0]
        digits = sum(map(str.isdigit, shape))
        while digits >= _SLASHED_DIGITS.stop and " " in shape:  # another number stands behind it
            shape = shape.rpartition(" ")[0]
            digits = sum(map(str.isdigit, shape))
        start, end = match.start(), match.start() + len(shape)
        if digits not in _SLASHED_DIGITS and not (digits == 9 and named.near(start, end, after=0)):
            continue
        if "/" in shape or "-" in shape or not in_row(text, start, end):
            yield PiiSpan(start, end, Kind.PHONE)


def _abroad(text: str, named: WordPositions) -> Iterator[PiiSpan]:
    """Find international numbers: `+` and a country code, then groups until the country's number of
    digits. A blank after the + means a sum, unless there are others."""
    for match in _ABROAD.finditer(text):
        start, end = match.start(), _abroad_end(text, match.end())
        if not end or _NO_PHONE.fullmatch(text, start, end):
            continue
        if match[0] != "+ " or " " in text[start + 2 : end] or named.near(start, end, after=0):
            yield PiiSpan(start, end, Kind.PHONE)


def _abroad_end(text: str, position: int) -> int | None:
    code = _CODE.match(text, position)
    if code is None:
        return None
    position = code.end()
    least, most = _LENGTHS.get(code[0], (7, 12))
    end, digits, gaps, singles = None, 0, "", 0
    while group := _GROUP.match(text, position):
        digits += len(group[1])
        if digits > most:
            break
        gap = text[position : group.start(1)]
        singles += bool(gaps) and bool(gap) and len(group[1]) == 1
        gaps += gap or "_"
        position = group.end()
        if digits >= least:
            end = position
    if end is None or _GOES_ON.match(text, end):
        return None
    # Signed decimals or sums in a row: +1.25 0.33 2.10
    decimals = "." in gaps and (" " in gaps or gaps.count(".") < 2)
    return None if decimals or singles > 1 else end
