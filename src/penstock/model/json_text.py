"""JSON that others have written, read with care."""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.model.errors import ValidationError

DEPTH = 100
"""Of values within values: well within what every later step of the way can follow."""
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def value_of(text: bytes | str, what: str) -> Any:
    """JSON that every later step can take: not too deep, and of characters only. ValidationError
    says of `what` why it is not."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        value = json.loads(text)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValidationError(f"{what} has half a character (\\ud800 to \\udfff)") from None
    except (ValueError, RecursionError):
        raise ValidationError(f"{what} is not JSON") from None
    if text.count("[") + text.count("{") > DEPTH and _too_deep(value):
        raise ValidationError(f"{what} has values within values, over {DEPTH} deep")
    return value


def _too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH):
        within = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for some in within for one in some if isinstance(one, dict | list)]
        if not level:
            return False
    return True
