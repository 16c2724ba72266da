"""The browser that reads result pages of search engines, as configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from penstock.errors import ConfigError
from penstock.model.section import OVER_ZERO, check_fields, setting

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
_PLACES = {"{page}": 1, "{offset}": 0}
"""Placeholders for where a page is among the others, and what the first page has there."""


@dataclass(slots=True, frozen=True)
class SearchEngineConfig:
    """A search engine: the URL of its result pages, and how to parse them. Selectors are CSS;
    `selector@attribute` selects an attribute instead of the text."""

    url: str
    """URL of a result page: `https://host/?q={query}`, with `{page}` or `{offset}` if further pages
    have URLs of their own."""
    result: str
    """Selector of one result. The next three are relative to it."""
    title: str
    """Selector of the title."""
    link: str
    """Selector of the link; its `href` unless another attribute is named."""
    snippet: str | None = None
    """Selector of the snippet."""
    next: str | None = None
    """Selector of the control that leads to the next page: a link is followed, anything else is
    clicked."""
    first: int | None = setting(None, least=0)
    """Value of `{page}` or `{offset}` on the first page, if not 1 or 0."""
    unwrap: str | None = None
    """Query parameter that holds the target URL, if links are redirects through the engine."""
    no_results: tuple[str, ...] = ()
    """Selectors, or `text=` and a phrase, that identify a page without results. If set, a page that
    has neither results nor one of these is treated as a block."""
    captcha: tuple[str, ...] = ()
    """Selectors, or `text=` and a phrase, that identify a captcha."""
    blocked_urls: tuple[str, ...] = ()
    """URLs to which the engine redirects blocked clients; `*` matches anything."""
    hosts: tuple[str, ...] = ()
    """Hosts that the pages load from, besides that of `url`. Requests to others are blocked."""
    wait_seconds: float = setting(3.0, most=86400)
    """How long to wait for results to appear on a loaded page."""
    pause_seconds: float = setting(900.0, most=86400)
    """How long the engine is paused after it has blocked us."""

    def __post_init__(self) -> None:
        check_fields(self, least=OVER_ZERO)
        if "{query}" not in self.url or not _is_template(self.url):
            raise ConfigError("url must be like https://host/path?q={query}", setting="url")
        if len(self._places) + (self.next is not None) > 1:
            raise ConfigError("only one of {page}, {offset} and `next` can lead to the next page")

    @property
    def _places(self) -> list[str]:
        return [place for place in _PLACES if place in self.url]

    @property
    def counts(self) -> str:
        """What the place of a page is counted in: page, offset; next: it has no address."""
        return self._places[0].strip("{}") if self._places else "next"

    @property
    def all_hosts(self) -> frozenset[str]:
        return frozenset({urlsplit(self.url).hostname or "", *self.hosts})

    def address(self, query: str, place: int) -> str:
        """Of the page that begins `place` pages, or results, after the first."""
        address = self.url
        for one in self._places:
            first = _PLACES[one] if self.first is None else self.first
            address = address.replace(one, str(first + place))
        return address.replace("{query}", quote(query, safe=""))


@dataclass(slots=True, frozen=True)
class BrowserConfig:
    """Chromium, one per worker process that searches with it, and its search engines."""

    executable: str | None = None
    """Path of Chromium. By default `chromium`, `chromium-browser` or `google-chrome` on the
    PATH."""
    tabs: int = setting(1, least=1, most=16)
    """Maximum open result pages over all processes: the default `max_parallel` of the lane
    `browser`."""
    timeout_seconds: float = setting(30.0, most=86400)
    """Time limit for one page."""
    idle_seconds: float = setting(60.0, most=86400)
    """The browser is closed after this time without a search."""
    engines: Mapping[str, SearchEngineConfig] = field(default_factory=dict)
    """By name: engine `x` is the provider `browser.x`, in the lane `browser.x`."""

    def __post_init__(self) -> None:
        check_fields(self, least=OVER_ZERO)
        for name in self.engines:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"engine {name!r}: a name is of small letters, digits, - and _",
                    setting=f"engines.{name}",
                )


def _is_template(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and "{" not in parts.netloc
