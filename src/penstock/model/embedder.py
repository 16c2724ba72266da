"""Configuration of the embedder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.errors import ConfigError
from penstock.model.section import check_fields, setting


@dataclass(slots=True, frozen=True)
class EmbedderConfig:
    """The embedding model."""

    provider: Literal["offline", "openai"] = "offline"
    """`offline` (built in), or `openai`: any server with `/v1/embeddings`."""
    base_url: str | None = None
    """URL of the `openai` server, such as `http://localhost:8080/v1`."""
    model: str | None = None
    """Name of the model on that server."""
    dimensions: int | None = setting(None, least=1, most=8192)
    """Vector dimensions to request."""
    key_variable: str | None = None
    """Environment variable that holds the API key. Default: no key is sent."""

    def __post_init__(self) -> None:
        check_fields(self)
        needed = ("base_url", "model", "dimensions")
        missing = [name for name in needed if getattr(self, name) is None]
        if self.provider == "openai" and missing:
            raise ConfigError(f"an openai embedder needs {', '.join(missing)}")

    @property
    def identity(self) -> str:
        """What vectors of an openai embedder are kept under. The same model asked for another
        length makes other vectors, so that counts as another model."""
        return f"{self.model} ({self.dimensions} dimensions)"
