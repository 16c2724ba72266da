"""The port to an embedder: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """An adapter promises: as many vectors as texts, in their order, each of `dimensions`
    finite numbers and of unit length."""

    @property
    def model(self) -> str:
        """Name and version; stored with every vector, and never mixed with another."""
        ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Float32, little endian."""
        ...
