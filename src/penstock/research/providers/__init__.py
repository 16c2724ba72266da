"""Search providers, one per file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.model.browser import BrowserConfig
from penstock.model.providers import ADDRESSES, ProviderConfig
from penstock.ports.provider import SearchProvider
from penstock.research.providers.arxiv import Arxiv
from penstock.research.providers.crossref import Crossref
from penstock.research.providers.documents import DocumentsProvider
from penstock.research.providers.openalex import OpenAlex
from penstock.research.providers.paged import PagedProvider
from penstock.research.providers.searxng import Searxng
from penstock.research.providers.semantic_scholar import SemanticScholar

if TYPE_CHECKING:
    from penstock.adapters.browser.chromium import Browser
    from penstock.documents.service import Documents

_CLASSES: tuple[type[PagedProvider], ...] = (OpenAlex, SemanticScholar, Crossref, Arxiv, Searxng)


class Providers(dict[str, SearchProvider]):
    """Providers by name, and the browser that some of them share."""

    browser: Browser | None = None

    def check(self) -> None:
        """Raise ConfigError if the browser they need is missing: better not to start a worker than
        to fail every search."""
        if self.browser is not None:
            self.browser.check()

    async def close(self) -> None:
        if self.browser is not None:
            await self.browser.close()


def open_providers(
    configs: Mapping[str, ProviderConfig],
    *,
    browser: BrowserConfig | None = None,
    fetch_allow: Iterable[str] = (),
    documents: Documents | None = None,
) -> Providers:
    """Open the providers that have an address, public or configured; the engines of the browser;
    and the documents, if given. Close them when done. `fetch_allow` is that setting, and applies to
    engines."""
    found = Providers()
    for one in _CLASSES:
        config = configs.get(one.name, ProviderConfig())
        address = config.base_url or ADDRESSES[one.name]
        if address is not None:
            found[one.name] = one(address, config.api_key)
    if documents is not None:
        found[DocumentsProvider.name] = DocumentsProvider(documents)
    if browser is not None and browser.engines:
        _add_engines(found, browser, fetch_allow)
    return found


def _add_engines(found: Providers, config: BrowserConfig, fetch_allow: Iterable[str]) -> None:
    # Here, because few need it and it takes long to load.
    from penstock.adapters.browser.chromium import Browser
    from penstock.outbound.proxy import GuardedProxy
    from penstock.outbound.web_address import parse_allow
    from penstock.research.providers.browser import BrowserProvider

    hosts = frozenset[str]().union(*(engine.all_hosts for engine in config.engines.values()))
    proxy = GuardedProxy(hosts, parse_allow(fetch_allow))
    found.browser = Browser(config, proxy.serving)
    for name, engine in config.engines.items():
        provider = BrowserProvider(name, engine, found.browser, proxy, config.timeout_seconds)
        found[provider.name] = provider
