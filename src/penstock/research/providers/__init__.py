"""Search providers: who can be asked, each in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.providers import ADDRESSES, ProviderConfig
from penstock.ports.provider import SearchProvider
from penstock.research.providers.arxiv import Arxiv
from penstock.research.providers.crossref import Crossref
from penstock.research.providers.openalex import OpenAlex
from penstock.research.providers.paged import PagedProvider
from penstock.research.providers.searxng import Searxng
from penstock.research.providers.semantic_scholar import SemanticScholar

_CLASSES: tuple[type[PagedProvider], ...] = (OpenAlex, SemanticScholar, Crossref, Arxiv, Searxng)


def open_providers(configs: Mapping[str, ProviderConfig]) -> dict[str, SearchProvider]:
    """By name, those that have an address: their public one, or one that is configured."""
    found: dict[str, SearchProvider] = {}
    for one in _CLASSES:
        config = configs.get(one.name, ProviderConfig())
        address = config.base_url or ADDRESSES[one.name]
        if address is not None:
            found[one.name] = one(address, config.api_key)
    return found
