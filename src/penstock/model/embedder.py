"""Configuration of the embedder."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from penstock.errors import ConfigError


@dataclass(slots=True, frozen=True)
class EmbedderConfig:
    """`offline` needs nothing else; `openai` is any server with OpenAI's `/v1/embeddings`."""

    provider: Literal["offline", "openai"] = "offline"
    base_url: str | None = None
    model: str | None = None
    dimensions: int | None = None
    key_variable: str | None = None
    """The environment variable that holds the key; none: no key is sent."""

    def __post_init__(self) -> None:
        if self.provider not in ("offline", "openai"):
            raise ConfigError(f"provider must be offline or openai, not {self.provider!r}")
        if self.dimensions is not None and not 0 < self.dimensions <= 8192:
            raise ConfigError(f"dimensions must be between 1 and 8192, not {self.dimensions!r}")
        needed = ("base_url", "model", "dimensions")
        missing = [name for name in needed if getattr(self, name) is None]
        if self.provider == "openai" and missing:
            raise ConfigError(f"an openai embedder needs {', '.join(missing)}")

    @property
    def identity(self) -> str:
        """What vectors of an openai embedder are kept under. The same model asked for another
        length makes other vectors, so that counts as another model."""
        return f"{self.model} ({self.dimensions} dimensions)"


KEYS = {field.name: str(field.type) for field in fields(EmbedderConfig)}
