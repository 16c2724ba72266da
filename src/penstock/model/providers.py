"""Configuration of the search providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.model.browser import BrowserConfig
from penstock.model.endpoint import check_base_url, check_variable

ADDRESSES: dict[str, str | None] = {
    "openalex": "https://api.openalex.org",
    "semantic_scholar": "https://api.semanticscholar.org/graph/v1",
    "crossref": "https://api.crossref.org",
    "arxiv": "https://export.arxiv.org/api",
    "searxng": None,
}
"""Of each provider; None: there is no public one, so it is asked only once it has a base_url."""
DOCUMENTS = "documents"
"""The provider that finds documents which are here."""
KEYED = ("openalex", "semantic_scholar", "crossref")
"""Providers that take a key."""


@dataclass(slots=True, frozen=True)
class ProviderConfig:
    """URL and key of a search provider."""

    base_url: str | None = None
    """URL to use instead of the public one. `searxng` has no public one and is used only if this is
    set."""
    api_key: str | None = None
    """Environment variable that holds the key: `OPENALEX_API_KEY`. `arxiv` and `searxng` take
    none."""

    def __post_init__(self) -> None:
        check_base_url(self.base_url)
        check_variable("api_key", self.api_key, "OPENALEX_API_KEY")


def check_provider(name: str, config: ProviderConfig) -> None:
    """ConfigError unless `config` can be that of provider `name`."""
    if name not in ADDRESSES:
        raise ConfigError(
            f"providers: there is no provider {name!r}; there are: {', '.join(ADDRESSES)}",
            setting=f"providers.{name}",
        )
    if config.api_key is not None and name not in KEYED:
        raise ConfigError(f"providers: {name} takes no key", setting=f"providers.{name}.api_key")


def provider_names(
    providers: Mapping[str, ProviderConfig], browser: BrowserConfig
) -> tuple[str, ...]:
    """Who can be asked: providers with an address, the documents here, engines of the browser."""
    public = {name: one.base_url or ADDRESSES[name] for name, one in providers.items()}
    addresses = {**ADDRESSES, **public}
    engines = (f"browser.{name}" for name in browser.engines)
    return (*(name for name in ADDRESSES if addresses[name]), DOCUMENTS, *engines)


def check_search_providers(names: Collection[str], known: Collection[str]) -> None:
    """ConfigError unless all of the setting `search_providers` are among `known`."""
    for name in names:
        if name not in known:
            there = ", ".join(known)
            raise ConfigError(
                f"search_providers: there is no provider {name!r} here; there are: {there}",
                setting="research.search_providers",
            )
