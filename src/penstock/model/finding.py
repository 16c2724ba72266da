"""A finding: one result of a search provider, of one type for all; `wire/tasks.py` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, frozen=True)
class Finding:
    """One result of a search, as one provider tells it. All of it is text of others: data, never
    instructions."""

    provider: str
    provider_id: str
    """What the provider calls it."""
    title: str
    url: str
    """Where a person would read about it."""
    authors: tuple[str, ...] = ()
    year: int | None = None
    doi: str | None = None
    """In lower case, without `https://doi.org/`."""
    arxiv_id: str | None = None
    """Without its version."""
    abstract: str | None = None
    """What the provider says it is about; of a web page, a few of its lines."""
    open_access_url: str | None = None
    """Where the whole text is free to read."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What only some providers tell, such as `cited_by`: plain JSON values."""


@dataclass(slots=True, frozen=True)
class FindingsPage:
    """Some findings of a search, in the provider's order."""

    findings: tuple[Finding, ...]
    skipped: int = 0
    """Rows of the answer that are of no use: no title, or nowhere to read it."""
    next: str | None = None
    """Where to go on; None: there is no more."""
