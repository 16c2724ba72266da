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
    """A search engine: where its result pages are, and how they are read. Selectors are those of
    CSS; `selector@attribute` means an attribute and not the text."""

    url: str
    """Of a result page: `https://host/?q={query}`, with `{page}` or `{offset}` where pages after
    the first have addresses of their own."""
    result: str
    """One result; what follows is looked for inside it."""
    title: str
    """What it is called."""
    link: str
    """Where it leads; `href` unless another attribute is named."""
    snippet: str | None = None
    """A few lines of it."""
    next: str | None = None
    """What leads to the next page: its link is followed, or it is clicked."""
    first: int | None = setting(None, least=0)
    """What `{page}` (1) or `{offset}` (0) is on the first page, if something else."""
    unwrap: str | None = None
    """The parameter that holds the real address, where links lead through the engine."""
    no_results: tuple[str, ...] = ()
    """What a page shows that has found nothing. A page without results and without this is taken
    for a block. Selectors, or `text=` and some words of the page."""
    captcha: tuple[str, ...] = ()
    """What a page shows that wants proof of a person, in the same form."""
    blocked_urls: tuple[str, ...] = ()
    """Addresses that one is sent to instead of results; `*` stands for anything."""
    hosts: tuple[str, ...] = ()
    """Hosts that its pages need besides that of `url`; requests to others are not made."""
    wait_seconds: float = setting(3.0, most=86400)
    """How long results may take to appear in a page that has been loaded."""
    pause_seconds: float = setting(900.0, most=86400)
    """How long the engine is left alone once it has blocked us."""

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
    """One Chromium for each worker process that searches with it, and its engines."""

    executable: str | None = None
    """Chromium's program; without it `chromium`, `chromium-browser` or `google-chrome` on the
    PATH."""
    tabs: int = setting(1, least=1, most=16)
    """Result pages open at a time, in all processes together: what the lane `browser` has as
    `max_parallel`, unless that is configured."""
    timeout_seconds: float = setting(30.0, most=86400)
    """How long one page may take."""
    idle_seconds: float = setting(60.0, most=86400)
    """After so long without a search the browser is closed."""
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
