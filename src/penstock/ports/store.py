"""The port to a store: one database for documents, research tasks, answers, API keys and the
server's records."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from penstock.ports.access import AccessStore
from penstock.ports.answers import AnswerStore
from penstock.ports.documents import DocumentStore
from penstock.ports.research import TaskStore


class Store(Protocol):
    """Opened before what is in it, and closed after."""

    @property
    def blobs(self) -> Path | None:
        """The folder for originals unless another is set; None: it has none beside it."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def documents(self) -> DocumentStore: ...

    def access(self) -> AccessStore: ...

    def research(self) -> TaskStore: ...

    def answers(self) -> AnswerStore: ...
