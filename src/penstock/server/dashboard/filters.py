"""Template filters. Whatever comes from a job or a document is text, never markup."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from penstock.ports.steps import waits_for_signal
from penstock.text.error_text import in_words

LONG = 400
"""Maximum characters of a string in JSON before it is folded."""
SHOWN = 20_000
"""Maximum characters of JSON shown."""
DEEPEST = 100
"""Maximum indentation of JSON."""
CHUNKS = 20
"""Chunks of a document per page."""
MASK = re.compile(r"\[[A-Z][A-Z_]{1,30}\]")
MASKED, MARKED = Markup('<span class="mask">{}</span>'), Markup("<mark>{}</mark>")
LAST_YEAR = 253e9
"""The calendar ends with the year 9999."""


def visible(value: Any) -> Any:
    """Escape invisible and control characters in a template's output. Line ends and tabs stay."""
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in value)


def duration(seconds: float | None) -> str:
    """Format a duration to about two digits: 4 ms, 0.4 s, 12 s, 3 min, 2 h, 5 d."""
    if seconds is None:
        return "-"
    if seconds < 0.0995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for size, step, unit in ((59.5, 60, "s"), (59.5, 60, "min"), (47.5, 24, "h")):
        if seconds < size:
            return f"{seconds:.0f} {unit}"
        seconds /= step
    return f"{seconds:,.0f} d"


def when(at: float | None) -> Markup:
    """Format a time relative to now, with the absolute time as the title."""
    if at is None:
        return Markup("-")
    away = at - time.time()
    seconds = round(abs(away))
    length = f"{seconds} s" if seconds < 60 else duration(seconds)
    return _time(at, "now" if seconds == 0 else f"{length} ago" if away < 0 else f"in {length}")


def elapsed(at: float) -> Markup:
    """Format the time elapsed since then, with the start as the title."""
    return _time(at, duration(round(max(0.0, time.time() - at))))


def moment(at: float | None) -> Markup:
    """Format an absolute time."""
    if at is None or at > LAST_YEAR:
        return Markup("-")
    return _time(at, f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC")


def clock(at: float) -> str:
    """Format the time of day as plain text."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S.%f}"[:-3]


def _time(at: float, said: str) -> Markup:
    if at > LAST_YEAR:
        return Markup("never")
    then = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        then.isoformat(timespec="milliseconds"), f"{then:%Y-%m-%d %H:%M:%S} UTC", said
    )


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def size(count: int | None) -> str:
    """Format a size in bytes."""
    if count is None:
        return "-"
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} TB"


def highlighted(text: str, spans: Iterable[tuple[int, int, Markup]]) -> Markup:
    """A text with markup around spans of it (start, end, and the markup with `{}` for what is
    between), given in order."""
    parts, done = [], 0
    for start, end, around in spans:
        parts.append(escape(visible(text[done:start])))
        parts.append(around.format(visible(text[start:end])))
        done = end
    parts.append(escape(visible(text[done:])))
    return Markup("").join(parts)


def masks(text: str) -> Markup:
    """Highlight the masks in a text."""
    return highlighted(text, ((*found.span(), MASKED) for found in MASK.finditer(text)))


def marked(text: str, marks: Sequence[tuple[int, int]]) -> Markup:
    """Highlight spans of a text, given in order."""
    return highlighted(text, ((*span, MARKED) for span in marks))


def as_json(value: Any, most: int = SHOWN) -> Markup:
    """Format JSON, folding long parts; at most so many characters of it."""
    out: list[Markup] = []
    left = most

    def put(text: str) -> None:
        nonlocal left
        if left > 0:
            out.append(escape(text[:left]))
            left -= len(text)
            if left <= 0:
                out.append(Markup('<span class="faint">\n... and more</span>'))

    def text(one: str) -> None:
        written = str(visible(json.dumps(one, ensure_ascii=False)))
        if len(written) <= LONG or left <= 0:
            put(written)
            return
        out.append(
            Markup("<details><summary>{}... ({} characters)</summary>").format(
                written[:80], f"{len(one):,}"
            )
        )
        put(written)
        out.append(Markup("</details>"))

    def walk(one: Any, indent: str) -> None:
        inner = indent + "  "
        if len(indent) > DEEPEST and isinstance(one, dict | list):
            put("...")
            return
        if isinstance(one, dict) and one:
            put("{\n")
            for index, (name, value) in enumerate(one.items()):
                if left <= 0:
                    return
                put(f"{inner}{visible(json.dumps(str(name), ensure_ascii=False))}: ")
                walk(value, inner)
                put(",\n" if index + 1 < len(one) else "\n")
            put(indent + "}")
        elif isinstance(one, list | tuple) and one:
            put("[\n")
            for index, value in enumerate(one):
                if left <= 0:
                    return
                put(inner)
                walk(value, inner)
                put(",\n" if index + 1 < len(one) else "\n")
            put(indent + "]")
        elif isinstance(one, str):
            text(one)
        else:
            put(json.dumps(one))

    walk(value, "")
    return Markup('<div class="json">{}</div>').format(Markup("").join(out))


def in_path(name: str) -> str:
    """Escape a name as one part of a path."""
    return quote(name, safe="")


def at_document(name: str, collection: str, chunk: int | None = None) -> str:
    """URL of a document's page, or of one of its chunks."""
    query = "" if collection == "default" else f"collection={in_path(collection)}"
    if chunk is None:
        return f"/documents/{in_path(name)}" + (f"?{query}" if query else "")
    start = f"{query}&" if query else ""
    return f"/documents/{in_path(name)}?{start}from={chunk - chunk % CHUNKS}#chunk-{chunk}"


FILTERS = {
    "when": when,
    "elapsed": elapsed,
    "moment": moment,
    "clock": clock,
    "in_words": in_words,
    "waits_for_signal": waits_for_signal,
    "duration": duration,
    "number": number,
    "size": size,
    "masks": masks,
    "marked": marked,
    "as_json": as_json,
    "in_path": in_path,
    "at_document": at_document,
}
