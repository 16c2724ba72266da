"""Search engines without an API: reads their result pages in a browser, page by page.

An engine is defined by the config. If it demands a captcha or rejects the request, that is reported
and the engine is paused: nothing is done to get around it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.adapters.browser.chromium import Browser
from penstock.adapters.browser.tab import LoadFailed, PageMoved, ScriptFailed, Tab
from penstock.errors import (
    Blocked,
    ConfigError,
    HttpError,
    PenstockError,
    ProviderError,
    Unavailable,
)
from penstock.model.browser import SearchEngineConfig
from penstock.model.finding import Finding, FindingsPage
from penstock.outbound.proxy import GuardedProxy
from penstock.ports.provider import ProviderContext
from penstock.ports.receipts import ReceiptRequest
from penstock.research.merge import arxiv_id_of, canonical_url, doi_of
from penstock.research.providers.fields import Row, link
from penstock.research.providers.paged import Rows, checked, collect, offset_of
from penstock.text.retry_after import retry_after

READ = (Path(__file__).parent / "result_page.js").read_text()
CLICK = "selector => document.querySelector(selector).click()"
QUIET_SECONDS = 0.15
"""A page without changes for this long has settled."""
FEWEST_ROWS = 5
"""Minimum rows of a typical result page; with fewer, a search ends before it has enough results."""
REFUSALS = (403, 429, 503)
_NO_ANSWER = ("CONNECTION", "TIMED_OUT", "EMPTY_RESPONSE", "NETWORK", "SOCKS", "TUNNEL")
"""Parts of Chromium's error codes that mean that nobody responded."""


class BrowserProvider:
    """One engine."""

    def __init__(
        self,
        name: str,
        engine: SearchEngineConfig,
        browser: Browser,
        proxy: GuardedProxy,
        timeout: float,
    ) -> None:
        self.name = self.lane = f"browser.{name}"
        self.engine = engine
        self.timeout = timeout
        """Time limit for one page."""
        self.proxy = proxy
        self._browser = browser

    async def search(
        self, asking: ProviderContext, query: str, limit: int, start: str | None = None
    ) -> AsyncGenerator[FindingsPage, None]:
        asked = checked(query, limit)
        offset_of(start)  # before it costs a tab
        async with self._browser.tab(self.engine.all_hosts) as tab:
            visit = _Visit(self, asking, tab, asked)
            pages = math.ceil(limit / FEWEST_ROWS)
            async for page in collect(visit.rows, self._finding, limit, pages, start):
                yield page

    def _finding(self, given: Any) -> Finding | None:
        row = Row(given)
        title, url = row.text("title"), self._unwrapped(row.text("link"))
        if title is None or url is None:
            return None
        return Finding(
            provider=self.name,
            provider_id=canonical_url(url) or url,
            title=title,
            url=url,
            doi=doi_of(url),
            arxiv_id=arxiv_id_of(url),
            abstract=row.text("snippet"),
        )

    def _unwrapped(self, url: str | None) -> str | None:
        """Return the target of a link, if it redirects through the engine."""
        if url is None or self.engine.unwrap is None:
            return link(url)
        try:
            inner = parse_qs(urlsplit(url).query).get(self.engine.unwrap)
        except ValueError:
            return None
        return link(inner[0] if inner else url)


class _Visit:
    """One search through the result pages of an engine, in one tab."""

    def __init__(
        self, provider: BrowserProvider, asking: ProviderContext, tab: Tab, query: str
    ) -> None:
        self._provider = provider
        self._engine = provider.engine
        self._asking = asking
        self._tab = tab
        self._query = query
        self._shown: Row | None = None
        """Content of the tab; None: nothing yet."""
        self._page = 0
        """Number of the current page, from 0."""

    async def rows(self, cursor: str | None) -> Rows:
        """Return the rows of a page, and the cursor of the next one."""
        place = offset_of(cursor)
        if self._engine.counts == "next":
            shown = await self._walk(place)
            goes_on = shown is not None and shown.raw("next") is not None
            return shown.items("rows") if shown else [], str(place + 1) if goes_on else None
        shown = await self._show(partial(self._tab.load, self._address(place)))
        rows = shown.items("rows")
        step = len(rows) if self._engine.counts == "offset" else 1
        return rows, str(place + step) if rows else None

    async def _walk(self, place: int) -> Row | None:
        """Go to a page without its own URL, click by click from the first one."""
        if self._shown is None:
            await self._show(partial(self._tab.load, self._address(0)))
        while self._page < place:
            assert self._shown is not None
            if self._shown.raw("next") is None:
                return None
            await self._show(partial(self._follow, self._shown.row("next").link("href")))
            self._page += 1
        return self._shown

    async def _follow(self, href: str | None) -> None:
        if href is not None:
            await self._tab.load(href)
        else:
            self._tab.forget()
            await self._tab.run(CLICK, self._engine.next)

    def _address(self, place: int) -> str:
        return self._engine.address(self._query, place)

    async def _show(self, move: Callable[[], Awaitable[None]]) -> Row:
        """Load a page, with its own permit, and read it."""
        provider = self._provider
        asked = [provider.name, self._query, self._tab.url]
        receipt = self._asking.receipts.begin(ReceiptRequest(provider.lane, asked, kept="findings"))
        async with self._asking.lanes.request(provider.lane):
            try:
                async with asyncio.timeout(provider.timeout):
                    await move()
                    self._check_answer()
                    shown = await self._read()
            except LoadFailed as error:
                raise self._meaning(error) from error
            except TimeoutError as error:
                raise self._unavailable(f"no page within {provider.timeout:g} s") from error
            except ScriptFailed as error:
                raise _script_meaning(provider.name, error) from error
            self._check_answer()
            self._check_page(shown)
        await receipt.refer()
        self._shown = shown
        return shown

    async def _read(self) -> Row:
        before = None if self._shown is None else self._shown.raw("mark")
        while True:
            try:
                wait = self._engine.wait_seconds * 1000
                found = await self._tab.run(
                    READ, _places(self._engine), before, wait, QUIET_SECONDS * 1000
                )
            except PageMoved:
                await self._tab.settled()
            else:
                return Row(found)

    def _check_answer(self) -> None:
        """Raise the error that the status stands for."""
        status, provider = self._tab.answer.status, self._provider
        if status in REFUSALS:
            said = retry_after(self._tab.answer.headers.get("retry-after"))
            raise self._blocked(f"HTTP {status}", said)
        if status >= 500:
            raise self._unavailable(f"HTTP {status}", status)
        if status >= 400:
            raise HttpError(f"{provider.name}: HTTP {status}", status)
        for pattern in self._engine.blocked_urls:
            if fnmatchcase(self._tab.url, pattern):
                raise self._blocked(f"it leads to {pattern}")

    def _check_page(self, shown: Row) -> None:
        marker = shown.text("captcha")
        if marker is not None:
            raise self._blocked(f"the page shows {marker}")
        silent = bool(self._engine.no_results) and not shown.raw("nothing")
        if not shown.items("rows") and silent:
            raise self._blocked("the page neither has results nor says that there are none")

    def _meaning(self, error: LoadFailed) -> PenstockError:
        host = urlsplit(error.url).hostname or ""
        refusal = self._provider.proxy.refusal(host)
        if host and host not in self._engine.all_hosts:
            return self._blocked(f"it leads to {host}")
        if refusal is not None:
            return refusal
        if any(part in error.chromium_code for part in _NO_ANSWER):
            return self._unavailable(error.chromium_code)
        return ProviderError(
            f"{self._provider.name}: the page cannot be loaded: {error.chromium_code}"
        )

    def _blocked(self, why: str, said: float | None = None) -> Blocked:
        pause = self._engine.pause_seconds if said is None else said
        return Blocked(self._provider.name, why, pause)

    def _unavailable(self, why: str, status: int | None = None) -> Unavailable:
        problem = Unavailable(f"{self._provider.name}: {why}")
        problem.lane, problem.status = self._provider.lane, status
        return problem


def _script_meaning(name: str, error: ScriptFailed) -> PenstockError:
    """Convert a script error: an invalid selector is a ConfigError, anything else a
    ProviderError."""
    if "selector" in str(error):
        return ConfigError(f"{name}: {error}")
    return ProviderError(f"{name}: the page cannot be read")


def _places(engine: SearchEngineConfig) -> dict[str, Any]:
    """Convert the engine's configuration for the script."""
    places = asdict(engine)
    for name in ("title", "link", "snippet"):
        if places[name] is not None:
            selector, _, attribute = places[name].partition("@")
            default = "href" if name == "link" else ""
            places[name] = {"selector": selector.strip(), "attribute": attribute or default}
    return places
