"""The port to an embedder: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Turns texts into vectors that are near where the texts mean the same.

    An adapter promises that `embed` returns one vector for each text, in their order: `dimensions`
    times float32, little-endian, finite and of unit length together. Else it raises: Unavailable or
    RateLimited if trying again later can help, EmbedderError or another PermanentError if not.
    """

    @property
    def model(self) -> str:
        """Name and version. Stored with every vector: those of two models are never compared."""

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]: ...
