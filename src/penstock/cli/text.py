"""Formats values as short texts for people, safe to print."""

from __future__ import annotations

import json
import time
from typing import Any

from penstock.text.error_text import in_words


def printable(text: str) -> str:
    """Put `text` on one line, without control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def duration(seconds: float) -> str:
    """Format `seconds` to about two digits: 0.4 s, 12 s, 3 min, 2 h, 5 d."""
    if seconds < 0:
        return "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for size, unit in ((60, "s"), (60, "min"), (48, "h")):
        if seconds < size - 0.5:
            return f"{seconds:.0f} {unit}"
        seconds /= 60 if unit != "h" else 24
    return f"{seconds:.0f} d"


def age(since: float) -> str:
    """Format how long ago `since` was, on this machine's clock."""
    return duration(time.time() - since)


def moment(at: float | None) -> str:
    """Format a time in the local time zone, and its distance from now."""
    if at is None:
        return "-"
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    away = at - time.time()
    return f"{text} (in {duration(away)})" if away > 0 else f"{text} ({duration(-away)} ago)"


def plural(count: int, what: str) -> str:
    """Format a count: `1 job`, `1,000 jobs`."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def pretty(value: Any) -> str:
    """Format JSON for people: on one line if it is short."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > 76:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(printable(line) for line in text.split("\n"))


def problem(error: Any, *, places: bool = False) -> str:
    """Format a stored error on one line, with its causes; '' without one."""
    return printable(in_words(error, places=places)) if error else ""
