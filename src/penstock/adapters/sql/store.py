"""The parts of a store that both databases share: API keys, research tasks, answers."""

from __future__ import annotations

from penstock.adapters.sql.access import SqlAccess
from penstock.adapters.sql.answers import SqlAnswers
from penstock.adapters.sql.dialect import SqlDatabase
from penstock.adapters.sql.tasks import SqlTasks


class SqlStore:
    """The common part of `penstock.ports.store.Store`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._tables = database

    def access(self) -> SqlAccess:
        return SqlAccess(self._tables)

    def research(self) -> SqlTasks:
        return SqlTasks(self._tables)

    def answers(self) -> SqlAnswers:
        return SqlAnswers(self._tables)
