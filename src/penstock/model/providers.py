"""Configuration of the search providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

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
    """The configuration of one provider."""

    base_url: str | None = None
    """Instead of its public address; `searxng` has none, and is asked only where this is set."""
    api_key: str | None = None
    """The environment variable that holds the key: `OPENALEX_API_KEY`. `arxiv` and `searxng` take
    none."""

    def __post_init__(self) -> None:
        if self.base_url is not None:
            check_base_url(self.base_url)
        if self.api_key is not None:
            check_variable("api_key", self.api_key, "OPENALEX_API_KEY")


KEYS = tuple(field.name for field in fields(ProviderConfig))


def check_provider(name: str, config: ProviderConfig) -> None:
    """ConfigError unless `config` can be that of provider `name`."""
    if name not in ADDRESSES:
        raise ConfigError(f"there is no provider {name!r}; there are: {', '.join(ADDRESSES)}")
    if config.api_key is not None and name not in KEYED:
        raise ConfigError(f"{name} takes no key")


def provider_names(
    providers: Mapping[str, ProviderConfig], browser: BrowserConfig
) -> tuple[str, ...]:
    """Who can be asked: providers with an address, the documents here, engines of the browser."""
    public = {name: one.base_url or ADDRESSES[name] for name, one in providers.items()}
    addresses = {**ADDRESSES, **public}
    engines = (f"browser.{name}" for name in browser.engines)
    return (*(name for name in ADDRESSES if addresses[name]), DOCUMENTS, *engines)


def check_search_providers(setting: str, known: Collection[str]) -> tuple[str, ...]:
    """The names in the setting `search_providers`. ConfigError unless all are among `known`."""
    names = tuple(name.strip() for name in setting.split(",") if name.strip())
    for name in names:
        if name not in known:
            there = ", ".join(known)
            raise ConfigError(
                f"search_providers: there is no provider {name!r} here; there are: {there}"
            )
    return names
