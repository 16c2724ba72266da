"""Parses positions in a feed; each kind of queue has its own form."""

from __future__ import annotations

import re

from penstock.errors import ValidationError


def parse(form: str, position: str) -> tuple[str, ...]:
    """The groups of a position of this form; ValidationError for any other text."""
    match = re.fullmatch(form, position, re.ASCII)
    if match is None:
        raise foreign(position)
    return match.groups()


def foreign(position: str) -> ValidationError:
    return ValidationError(f"{position[:100]!r} is not a position of this queue's feed")
