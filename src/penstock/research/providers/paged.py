"""Paging common to all providers: one request per page, until there are enough findings."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, ClassVar

from penstock.errors import ConfigError, ValidationError
from penstock.model.finding import Finding, FindingsPage
from penstock.ports.provider import Http, ProviderContext
from penstock.text.normalize import storable
from penstock.text.user_agent import user_agent

SPARE_PAGES = 2
"""Extra pages to request if rows were unusable or duplicates. Bounds the cost of a search, whatever
a provider returns."""
MAX_BYTES = 32 * 1024 * 1024
MAX_QUERY = 2_000

Rows = tuple[list[Any], str | None]
"""The rows of a response, and the cursor of the next page."""


class PagedProvider(ABC):
    """Base of providers: a subclass defines its requests (`request`) and how to parse responses
    (`rows`, `finding`).

    `api_key` names the environment variable that holds the key. It is read for each request, and
    is in no message and no log.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    page_size: ClassVar[int] = 100

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        self._url = f"{base_url.rstrip('/')}{self.path}"
        self._key_variable = api_key

    @property
    def lane(self) -> str:
        return self.name

    async def search(
        self, asking: ProviderContext, query: str, limit: int, start: str | None = None
    ) -> AsyncGenerator[FindingsPage, None]:
        asked = checked(query, limit)
        pages = math.ceil(limit / self.page_size)
        size = math.ceil(limit / pages)

        async def rows(cursor: str | None) -> Rows:
            answer = await self._ask(asking.http, asked, size, cursor)
            return self.rows(answer, size, cursor)

        async for page in collect(rows, self.finding, limit, pages, start):
            yield page

    async def _ask(self, http: Http, query: str, size: int, cursor: str | None) -> bytes:
        response = await http.get(
            self._url,
            params={**self.request(query, size, cursor), **self.key_parameters()},
            headers={"user-agent": user_agent(), **self.key_headers()},
            lane=self.lane,
            max_bytes=MAX_BYTES,
            record="findings",
        )
        return response.content

    @abstractmethod
    def request(self, query: str, size: int, cursor: str | None) -> dict[str, str]:
        """Build the parameters that request a page. `cursor` is None for the first."""

    @abstractmethod
    def rows(self, body: bytes, size: int, cursor: str | None) -> Rows:
        """Parse a response. Raises ProviderError if it is not as documented."""

    @abstractmethod
    def finding(self, row: Any) -> Finding | None:
        """Convert a row; None if it is unusable. Never raises."""

    def key_parameters(self) -> Mapping[str, str]:
        return {}

    def key_headers(self) -> Mapping[str, str]:
        return {}

    def _key(self) -> str | None:
        if self._key_variable is None:
            return None
        key = os.environ.get(self._key_variable, "").strip()
        if not key:
            raise ConfigError(f"set {self._key_variable} to the key of {self.name}")
        return key


async def collect(
    rows: Callable[[str | None], Awaitable[Rows]],
    finding: Callable[[Any], Finding | None],
    limit: int,
    pages: int,
    start: str | None,
) -> AsyncGenerator[FindingsPage, None]:
    """Yield pages with `limit` findings in total, without duplicates, from about `pages`
    requests."""
    seen: set[str] = set()
    cursor = start
    for _ in range(pages + SPARE_PAGES):
        found, cursor = await rows(cursor)
        read = [finding(row) for row in found]
        new = {one.provider_id: one for one in read if one and one.provider_id not in seen}
        findings, skipped = tuple(new.values())[: limit - len(seen)], read.count(None)
        if not findings and not skipped:
            cursor = None  # empty, or the page before once more: some repeat their last one
        yield FindingsPage(findings, skipped, cursor)
        seen.update(new)
        if cursor is None or len(seen) >= limit:
            return


def offset_of(cursor: str | None) -> int:
    """Parse a cursor of providers that count; raises ValidationError if it is not one of theirs."""
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 9:
        raise ValidationError("invalid cursor: not a position in these results")
    return int(cursor)


def checked(query: str, limit: int) -> str:
    """Validate and normalize the query; raises ValidationError."""
    words = storable(" ".join(query.split()))
    if not words:
        raise ValidationError("the query is empty")
    if len(words) > MAX_QUERY:
        raise ValidationError(f"the query is longer than {MAX_QUERY:,} characters")
    if limit < 1:
        raise ValidationError(f"limit must be at least 1, not {limit}")
    return words
