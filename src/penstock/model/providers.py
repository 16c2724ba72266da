"""Which search providers are asked, and how, as configured."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from penstock.model.errors import ConfigError

ADDRESSES: dict[str, str | None] = {
    "openalex": "https://api.openalex.org",
    "semantic_scholar": "https://api.semanticscholar.org/graph/v1",
    "crossref": "https://api.crossref.org",
    "arxiv": "https://export.arxiv.org/api",
    "searxng": None,
}
"""Of each provider; None: there is no public one, so it is asked only once it has a base_url."""
KEYED = ("openalex", "semantic_scholar", "crossref")
"""Providers that take a key."""

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(slots=True, frozen=True)
class ProviderConfig:
    """What is configured for one provider."""

    base_url: str | None = None
    """Instead of its public address; `searxng` has none, and is asked only where this is set."""
    api_key: str | None = None
    """The environment variable that holds the key: `OPENALEX_API_KEY`. `arxiv` and `searxng` take
    none."""

    def __post_init__(self) -> None:
        if self.base_url is not None and not _is_address(self.base_url):
            raise ConfigError("base_url must be like https://host/path, without ? and #")
        # Not quoted: what does not look like a name is likely the key itself.
        if self.api_key is not None and not _VARIABLE.fullmatch(self.api_key):
            raise ConfigError(
                "api_key names the environment variable that holds the key, such as "
                "OPENALEX_API_KEY; the key itself does not belong into a file"
            )


KEYS = tuple(field.name for field in fields(ProviderConfig))


def check_provider(name: str, config: ProviderConfig) -> None:
    """ConfigError unless `config` can be that of provider `name`."""
    if name not in ADDRESSES:
        raise ConfigError(f"there is no provider {name!r}; there are: {', '.join(ADDRESSES)}")
    if config.api_key is not None and name not in KEYED:
        raise ConfigError(f"{name} takes no key")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    whole = parts.scheme in ("http", "https") and bool(parts.hostname)
    return whole and not parts.query and not parts.fragment
