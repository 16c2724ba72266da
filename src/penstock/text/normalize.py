"""Normalizes text so that every store accepts it."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

_MOST_MARKS = 30
"""Combining characters in a row. No language needs more, and Unicode's Stream-Safe Text Format
allows no more: to put them in order takes the square of their number."""
_LAST_MARK = 0x1EFFF
_JOINER = "\N{COMBINING GRAPHEME JOINER}"
"""Cannot be seen, and nothing is put in order across it."""

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def is_storable(text: str) -> bool:
    """Whether it can be encoded: no lone surrogates, which stand for bytes that are no text."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def storable(text: str) -> str:
    """`text` without what cannot be encoded (lone surrogates) or stored (NUL)."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def normalized(form: Form, text: str) -> str:
    """`unicodedata.normalize` in linear time, also for text of others: marks are put in order 30 at
    a time."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _too_many_marks().sub(rf"\g<0>{_JOINER}", text))


@cache
def _too_many_marks() -> re.Pattern[str]:
    """As many combining characters as may stand in a row, and another one behind them."""
    marks = "".join(filter(_combines, map(chr, range(0x300, _LAST_MARK))))
    return re.compile(f"[{marks}]{{{_MOST_MARKS}}}(?=[{marks}])")


def _combines(sign: str) -> bool:
    """Whether it combines with what stands before it; some do once they are taken apart."""
    return bool(unicodedata.combining(unicodedata.normalize("NFKD", sign)[0]))
