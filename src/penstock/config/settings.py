"""The settings of a process, and where each came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from penstock.errors import ConfigError
from penstock.model.browser import BrowserConfig
from penstock.model.budget import BudgetConfig, check_payers
from penstock.model.embedder import EmbedderConfig
from penstock.model.intake import IntakeConfig
from penstock.model.librarian import LibrarianConfig
from penstock.model.llm import LlmConfig
from penstock.model.name_masking import NamesConfig
from penstock.model.prices import PriceConfig, check_prices
from penstock.model.providers import (
    ProviderConfig,
    check_provider,
    check_search_providers,
    provider_names,
)
from penstock.model.section import keys, setting
from penstock.model.server import ServerConfig
from penstock.model.service_settings import AnswersConfig, DocumentsConfig, ResearchConfig
from penstock.model.settings import DEFAULT_QUEUE, EngineConfig, LoggingConfig, OutboundConfig

MAX_WEIGHT = 1e6


@dataclass(slots=True, frozen=True)
class Config:
    """All settings: the top level of `penstock.yaml`."""

    queue: str = DEFAULT_QUEUE
    """URL of the queue: `sqlite:///jobs.db`, `postgresql://user@host/database` or
    `redis://localhost:6379/0`."""
    store: str = ""
    """URL of the store for documents, research tasks, answers and API keys:
    `sqlite:///documents.db` or `postgresql://...`. Default: the queue's database."""
    blobs: str = ""
    """Location of original files until the document is searchable, and of results of steps over
    1 MiB: a directory, `s3://bucket/prefix` or `gs://bucket/prefix`. Default: next to the SQLite
    file of the store, or of the queue. With PostgreSQL or Redis there is no default; use a location
    that all worker processes can reach."""
    engine: EngineConfig = setting(EngineConfig)
    documents: DocumentsConfig = setting(DocumentsConfig)
    research: ResearchConfig = setting(ResearchConfig)
    answers: AnswersConfig = setting(AnswersConfig)
    outbound: OutboundConfig = setting(OutboundConfig)
    logging: LoggingConfig = setting(LoggingConfig)
    server: ServerConfig = setting(ServerConfig)
    embedder: EmbedderConfig = setting(EmbedderConfig)
    names: NamesConfig | None = None
    """None: names are not masked."""
    llm: LlmConfig = setting(LlmConfig)
    providers: Mapping[str, ProviderConfig] = setting(dict)
    """Configured search providers; the others use their defaults."""
    browser: BrowserConfig = setting(BrowserConfig)
    librarian: LibrarianConfig = setting(LibrarianConfig)
    intake: IntakeConfig = setting(IntakeConfig)
    lanes: Mapping[str, Mapping[str, Any]] = setting(dict)
    """Configured lanes; missing keys use the defaults."""
    prices: Mapping[str, Mapping[str, PriceConfig]] = setting(dict)
    """Prices of a million tokens, by model or lane, and by the first day of each price."""
    budgets: Mapping[str, BudgetConfig] = setting(dict)
    """What tenants and tasks may spend, by payer: `tenant:NAME` or `task:TENANT/ID`."""
    tenant_weights: Mapping[str, float] = setting(dict)
    """Tenant -> its share of turns, relative to a tenant of weight 1."""
    sources: Mapping[str, str] = setting(dict, read=False)
    """Where each configured setting and section comes from, by path: `engine.max_workers`."""

    def __post_init__(self) -> None:
        for tenant, weight in self.tenant_weights.items():
            if not 0 < weight <= MAX_WEIGHT:
                raise ConfigError(
                    f"the weight of {tenant} must be over 0", setting=f"tenant_weights.{tenant}"
                )
        for name, provider in self.providers.items():
            check_provider(name, provider)
        check_prices(self.prices)
        check_payers(self.budgets)
        known = provider_names(self.providers, self.browser)
        check_search_providers(self.research.search_providers, known)

    def source(self, name: str) -> str:
        return self.sources.get(name, "default")

    def rows(self) -> list[tuple[str, Any, str]]:
        """List (name, value, source) of every setting that has a value, by section, with secrets
        hidden."""
        found = _walk("", self)
        return [(name, value, self.source(name)) for name, value in found if value is not None]

    @property
    def warnings(self) -> list[str]:
        """Warnings about risky settings, for people."""
        reader = self.llm.model("ingest")
        if self.documents.scans != "model" or reader is None:
            return []
        return [
            f"scans: model sends pages without text to {hide_secrets(reader.base_url)} as they "
            "are: pictures cannot be masked"
        ]


def hide_secrets(url: str) -> str:
    """Hide passwords and keys in `url`."""
    parts = urlsplit(url)
    if parts.password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.split(':')[0]}:***@{host}")
    query = re.sub(r"(?i)\b([^=&]*(?:pass|secret|token|key)[^=&]*)=[^&]*", r"\1=***", parts.query)
    hidden = parts._replace(query=query)
    return url if hidden == urlsplit(url) else urlunsplit(hidden)


def _walk(path: str, value: Any, *, secret: bool = False) -> Iterator[tuple[str, Any]]:
    """Iterate over all settings below `path` and their values."""
    prefix = f"{path}." if path else ""
    if is_dataclass(value):
        for key, field in keys(type(value)).items():
            hidden = bool(field.metadata.get("secret"))
            yield from _walk(f"{prefix}{key}", getattr(value, key), secret=hidden)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _walk(f"{prefix}{key}", one, secret=secret)
    elif secret:
        yield path, "***"
    else:
        yield path, hide_secrets(value) if isinstance(value, str) and "://" in value else value
