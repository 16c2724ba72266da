"""Payment cards: a known prefix, its length, and the Luhn check digit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.context import LAST, WordPositions, first, in_prose, words
from penstock.documents.pii.kinds import Kind, PiiSpan

_SHAPE = re.compile(
    first("0-9") + r"(?:"
    r"[0-9]{3}(?P<a>[-. ]|  | - )[0-9]{4}(?P=a)[0-9]{4}(?P=a)[0-9]{4}(?:(?P=a)[0-9]{3})?"
    r"|[0-9]{3}(?P<b>[- ]|  | - )[0-9]{6}(?P=b)[0-9]{4,5}"
    r"|[0-9]{5}(?P<c>[- ]|  | - )[0-9]{13}"
    r"|[0-9]{13,18})" + LAST
)
WORDS = words(
    "card cards visa mastercard amex jcb diners unionpay カード クレジット 銀聯 카드 신용 체크"
)
_PREFIXES = (
    # 13-digit Visa cards are not made any more, and bar codes of Japan (45, 49) look like them.
    (re.compile(r"4"), {16, 19}),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), {16}),
    (re.compile(r"3[47]"), {15}),
    (re.compile(r"30[0-5]|3[689]"), {14, 16}),
    (re.compile(r"352[89]|35[3-8]"), {16, 17, 18, 19}),
    (re.compile(r"6011|64[4-9]|65|62|81"), {16, 17, 18, 19}),
    (re.compile(r"9[0-9]"), {16}),  # cards for use in Korea only
)
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_NEIGHBOUR = 200
# Digits without gaps right behind it are the number of something else.
_ID_BEFORE = re.compile(
    r"(?:(?<![A-Za-z])(?i:ids?|[ug]uid|pid|ref|seq|sku|ean|upc|gtin|imei|isbn|serial|ts|timestamp"
    r"|nonce|offset|hash|snowflake)|_id|[a-z]I[dD])['\")\]]{0,2} ?[:=#]? ?['\"(\[]?\Z"
)
# One group behind a card may be its expiry; two are a row.
_ROW_BEFORE = re.compile(r"(?<=[0-9A-Fa-f]{4} )")
_ROW_AFTER = re.compile(r"(?: [0-9A-Fa-f]{4}(?![0-9A-Za-z])){2}")


def find_cards(text: str) -> Iterator[PiiSpan]:
    named = WordPositions(WORDS, text)
    shapes = [(match, _is_card(match[0])) for match in _SHAPE.finditer(text)]
    for index, (match, good) in enumerate(shapes):
        start, end = match.span()
        if not good:
            continue
        if match[0].isdigit() and not named.near(start, end):
            if _ID_BEFORE.search(text, max(0, start - 16), start):
                continue
            if match[0][0] == "9" and not in_prose(text, start, end):
                continue
        if "-" not in match[0] and not (named.near(start, end) or in_prose(text, start, end)):
            # One number in ten passes Luhn by chance. Where one beside it does not, or the row
            # goes on, this is a table or a list of something else.
            beside = shapes[max(0, index - 1) : index] + shapes[index + 1 : index + 2]
            if any(not ok and abs(other.start() - start) < _NEIGHBOUR for other, ok in beside):
                continue
            if " " in match[0] and (_ROW_BEFORE.match(text, start) or _ROW_AFTER.match(text, end)):
                continue
        yield PiiSpan(start, end, Kind.CARD)


def _is_card(shape: str) -> bool:
    digits = "".join(filter(str.isdigit, shape))
    known = any(len(digits) in lengths and p.match(digits) for p, lengths in _PREFIXES)
    return known and _luhn(digits) and len(set(digits)) > 1


def _luhn(digits: str) -> bool:
    values = [ord(digit) - 48 for digit in reversed(digits)]
    return (sum(values[::2]) + sum(_DOUBLED[value] for value in values[1::2])) % 10 == 0
