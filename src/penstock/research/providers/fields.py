"""Reads fields of a provider's JSON defensively: wrong types count as missing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import ProviderError
from penstock.text.normalize import storable

_REST = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))*\s*/?>"""
_BLOCKS = re.compile(rf"(?i)</?(?:jats:)?(?:p|sec|title|list|list-item|br|div){_REST}")
_INLINE = re.compile(
    r"(?i)</?(?:jats:|mml:)?(?:i|b|u|em|strong|bold|italic|sub|sup|inf|scp|sc|tt|span|font|math|"
    rf"mrow|mi|mn|mo|msub|msup|msubsup|mtext|ext-link|xref|inline-formula|tex-math){_REST}"
)
"""Listed by name, because `a<b and c>d` is not a tag."""
_YEARS = range(1, 10_000)


class Row:
    """A JSON object, or anything that should have been one."""

    __slots__ = ("_values",)

    def __init__(self, value: Any) -> None:
        self._values: Mapping[str, Any] = value if isinstance(value, dict) else {}

    def raw(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        """Return a field as one line of text; None if empty."""
        return line(self.raw(name))

    def row(self, name: str) -> Row:
        return Row(self.raw(name))

    def items(self, name: str) -> list[Any]:
        value = self.raw(name)
        return value if isinstance(value, list) else []

    def rows(self, name: str) -> list[Row]:
        return [Row(value) for value in self.items(name)]

    def number(self, name: str) -> int | None:
        return whole(self.raw(name))

    def year(self, name: str) -> int | None:
        return year(self.raw(name))

    def link(self, name: str) -> str | None:
        return link(self.raw(name))


def json_row(body: bytes, provider: str) -> Row:
    """Parse a response as a JSON object; raises ProviderError if it is not one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProviderError(f"{provider} returned something other than JSON") from error
    if not isinstance(value, dict):
        raise ProviderError(f"{provider} returned JSON that is not an object")
    return Row(value)


def line(value: Any) -> str | None:
    """Collapse line breaks and surrounding whitespace."""
    if not isinstance(value, str):
        return None
    return storable(" ".join(value.split())) or None


def plain(value: Any) -> str | None:
    """Strip the HTML, JATS and MathML tags that publishers send."""
    if not isinstance(value, str):
        return None
    return line(html.unescape(_INLINE.sub("", _BLOCKS.sub(" ", value))))


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def year(value: Any) -> int | None:
    number = whole(value)
    return number if number is not None and number in _YEARS else None


def year_in(date: str | None) -> int | None:
    """Read the year of a date that starts with it: `2020-05-17T00:00:00Z`."""
    found = re.match(r"[0-9]{4}(?![0-9])", date or "")
    return year(int(found[0])) if found else None


def link(value: Any) -> str | None:
    """Return a web address; None for anything else (`javascript:`, a DOI, nothing)."""
    text = line(value)
    return text if text and re.match(r"(?i)https?://[^\s/]", text) else None


def known(**extra: Any) -> dict[str, Any]:
    """Drop unknown values."""
    return {name: value for name, value in extra.items() if value is not None}
