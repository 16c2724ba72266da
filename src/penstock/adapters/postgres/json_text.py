"""JSON as PostgreSQL's jsonb takes it."""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.model.text import storable

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def jsonb(value: Any) -> str:
    """`value` as JSON without what jsonb refuses: NUL and lone surrogates."""
    text = storable(json.dumps(value, ensure_ascii=False))
    return _NUL.sub("\\1\N{REPLACEMENT CHARACTER}", text) if "\\u0000" in text else text
