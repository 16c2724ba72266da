"""A store: one database for documents, research tasks, answers, API keys and actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from penstock.adapters.sql.access import AccessStore
from penstock.adapters.sql.answers import AnswerStore
from penstock.adapters.sql.dialect import SqlDatabase
from penstock.adapters.sql.documents import DocumentStore
from penstock.adapters.sql.tasks import TaskStore


class Store(ABC):
    """Opened before what is in it, and closed after."""

    blobs: Path | None = None
    """The folder for originals unless another is set; None: it has none beside it."""

    def __init__(self, database: SqlDatabase) -> None:
        self._tables = database

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def documents(self) -> DocumentStore: ...

    def access(self) -> AccessStore:
        return AccessStore(self._tables)

    def research(self) -> TaskStore:
        return TaskStore(self._tables)

    def answers(self) -> AnswerStore:
        return AnswerStore(self._tables)
