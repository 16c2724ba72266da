"""Which language models are used, as configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from penstock.model.errors import ConfigError

ROLES = ("ingest", "plan", "search", "answer")
"""What models are used for; each has its lane, `llm.ingest` and so on."""


@dataclass(slots=True, frozen=True)
class LlmConfig:
    """Any server with OpenAI's `/v1/chat/completions`. Nothing is asked of it by default."""

    base_url: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    """By role."""
    key_variable: str | None = None
    """The environment variable that holds the key; none: no key is sent."""

    def __post_init__(self) -> None:
        for role in self.models:
            if role not in ROLES:
                raise ConfigError(f"models has no {role!r}; there are: {', '.join(ROLES)}")
        if self.models and self.base_url is None:
            raise ConfigError("models need base_url, such as http://localhost:8080/v1")


KEYS = tuple(field.name for field in fields(LlmConfig))
