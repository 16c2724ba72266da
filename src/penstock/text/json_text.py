"""Parses untrusted JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.errors import ValidationError

DEPTH = 100
"""Of values within values: well within what every later step of the way can follow."""
MAX_VALUES = 25_000
"""In one text. Half a million lists of nothing are a megabyte, and keep a process busy for a
second: whoever parses them can do nothing else meanwhile, also in a thread."""
MAX_DIGITS = 400
"""Of a whole number; the largest float has 309. Time to read one, and to write it, grows with the
square of them."""
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _LongNumber(Exception):
    """A whole number of more digits than MAX_DIGITS."""


def value_of(text: bytes | str, what: str) -> Any:
    """JSON that every later step can take: not too deep, not of too many values, and of characters
    only. ValidationError says of `what` why it is not."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        many = has_too_many(text)
        value = None if many else json.loads(text, parse_int=_whole_number)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except _LongNumber:
        raise ValidationError(f"{what} has a number of over {MAX_DIGITS} digits") from None
    except UnicodeEncodeError:
        raise ValidationError(f"{what} has half a character (\\ud800 to \\udfff)") from None
    except (ValueError, RecursionError):
        raise ValidationError(f"{what} is not JSON") from None
    if many:
        raise ValidationError(f"{what} has over {MAX_VALUES:,} values")
    if text.count("[") + text.count("{") > DEPTH and _too_deep(value):
        raise ValidationError(f"{what} has values within values, over {DEPTH} deep")
    return value


def has_too_many(text: str, most: int = MAX_VALUES) -> bool:
    """Whether there are more values than that, before anything is parsed."""
    return _values(text) > most and _values(_without_strings(text)) > most


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _LongNumber
    return int(digits)


def _values(text: str) -> int:
    """About how many values there are, at least; what is in strings counts, too."""
    return text.count(",") + text.count("[") + text.count("{")


def _without_strings(text: str) -> str:
    """What is outside of strings. By what is done to a whole text at once, whatever it holds."""
    plain = text.replace("\\\\", "").replace('\\"', "")
    return "".join(plain.split('"')[::2])


def _too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH):
        within = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for some in within for one in some if isinstance(one, dict | list)]
        if not level:
            return False
    return True
