"""A SQLite file as a store: the queue's own, or another."""

from __future__ import annotations

from penstock.adapters.sql.store import Store
from penstock.adapters.sqlite.dialect import SqliteDatabase
from penstock.adapters.sqlite.documents import SqliteDocuments
from penstock.adapters.sqlite.file import SqliteFile


class SqliteStore(Store):
    """`shared`: the queue is in the same file, and opens and closes it."""

    def __init__(self, file: SqliteFile, *, shared: bool) -> None:
        super().__init__(SqliteDatabase(file))
        self._file = file
        self._shared = shared
        self.blobs = file.path.with_name(file.path.name + "-blobs")

    async def open(self) -> None:
        if not self._shared:
            await self._file.open()

    async def close(self) -> None:
        if not self._shared:
            await self._file.close()

    def documents(self) -> SqliteDocuments:
        return SqliteDocuments(self._file)
