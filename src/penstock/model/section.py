"""Sections of the settings: frozen dataclasses whose fields say which values they take."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from penstock.errors import ConfigError

OVER_ZERO = sys.float_info.min
"""The least value of what must be over 0."""


def setting(
    default: Any = MISSING,
    *,
    least: float | None = None,
    most: float | None = None,
    example: str | None = None,
    secret: bool = False,
    read: bool = True,
) -> Any:
    """A field of a section, with its bounds. `example` is quoted where the value is wrong or
    missing; a secret is never shown. What is not `read` is no setting. A class as default is
    called for each section."""
    facts = {"least": least, "most": most, "example": example, "secret": secret, "read": read}
    given = {key: value for key, value in facts.items() if value is not None}
    if isinstance(default, type):
        return field(default_factory=default, metadata=given)
    return field(default=default, metadata=given)


def keys(section: Any) -> Mapping[str, Field[Any]]:
    """The settings of a section, by name."""
    return {one.name: one for one in fields(section) if one.metadata.get("read", True)}


def types(section: Any) -> Mapping[str, Any]:
    """The types of a section's fields, by name."""
    return _hints(section)


_hints = cache(get_type_hints)


def choices(kind: Any) -> tuple[str, ...]:
    """The words that a setting of this type can be; empty if it is not limited to some."""
    return get_args(kind) if get_origin(kind) is Literal else ()


def one_of(words: tuple[str, ...]) -> str:
    return " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"


def check_fields(section: Any, *, least: float = 0) -> None:
    """ConfigError for the first number that is out of its bounds, or word that is none of its
    choices. `least` is the bound of numbers that name none."""
    kinds = types(type(section))
    for one in fields(section):
        value, words = getattr(section, one.name), choices(kinds[one.name])
        if words and value not in words:
            wanted = one_of(words)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            low, high = one.metadata.get("least", least), one.metadata.get("most")
            if low <= value <= (sys.float_info.max if high is None else high):
                continue
            wanted = _bounds(low, high)
        else:
            continue
        raise ConfigError(f"{one.name} must be {wanted}, not {value!r}", setting=one.name)


def _bounds(low: float, high: float | None) -> str:
    if low == OVER_ZERO:
        return "over 0" if high is None else f"over 0 and at most {high:g}"
    return f"a number from {low:g} up" if high is None else f"between {low:g} and {high:g}"
