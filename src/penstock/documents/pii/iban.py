"""IBANs: the length of their country, and the remainder of 97."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.documents.pii.kinds import Kind, PiiSpan

# From the check digits back to the country: most letters of a text begin no number.
_HEAD = re.compile(
    r"[0-9](?<=[A-Za-z]{2}[0-9])(?<![0-9A-Za-z][A-Za-z]{2}[0-9])"
    r"(?<![0-9A-Za-z]-[A-Za-z]{2}[0-9])[0-9](?=[ -]{0,2}[0-9A-Za-z]{2})"
)
_LENGTHS = {
    country: int(length)
    for length, countries in {
        "15": "NO",
        "16": "BE",
        "18": "DK FO FI GL NL SD",
        "19": "MK SI",
        "20": "AT BA EE KZ LT LU XK MN",
        "21": "CH HR LI LV",
        "22": "BG BH CR DE GB GE IE ME RS VA",
        "23": "AE GI IL IQ OM TL SO",
        "24": "AD CZ ES MD PK RO SA SE SK TN VG",
        "25": "LY PT ST",
        "26": "IS TR",
        "27": "BI DJ FR GR IT MC MR SM",
        "28": "AL AZ BY CY DO GT HU LB PL SV NI",
        "29": "BR EG PS QA UA",
        "30": "JO KW MU YE",
        "31": "MT SC",
        "32": "LC",
        "33": "RU",
    }.items()
    for country in countries.split()
}


def find_ibans(text: str) -> Iterator[PiiSpan]:
    for head in _HEAD.finditer(text):
        start = head.start() - 2
        country = text[start : head.start()]
        length = _LENGTHS.get(country.upper())
        if length is None:
            continue
        end = _end(text, head.end(), length - 4)
        if end is None or _remainder(text[start:end]) != 1:
            continue
        # Hexadecimal digits in groups get there by chance, in lower case.
        if country.isupper() or end - start == length:
            yield PiiSpan(start, end, Kind.IBAN)


def _end(text: str, position: int, wanted: int) -> int | None:
    """Return the offset after the `wanted`-th letter or digit from `position`; groups may be
    separated."""
    for _ in range(wanted):
        if text[position : position + 1] in ("-", " "):
            position += 2 if text.startswith("  ", position) else 1
        sign = text[position : position + 1]
        if not (sign.isascii() and sign.isalnum()):
            return None
        position += 1
    following = text[position : position + 1]
    return None if following.isascii() and following.isalnum() else position


def _remainder(shape: str) -> int:
    signs = shape.replace(" ", "").replace("-", "")
    return int("".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])) % 97
