"""A namespace of its own in the PostgreSQL server that tests share, and a look into it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.adapters.postgres.store import PostgresStore
from tests.support.servers import postgres_url


def new_url(server: str | None = None) -> str:
    """Where a new queue can be."""
    return f"{server or postgres_url()}?namespace=test_{uuid.uuid4().hex[:24]}"


class Psql:
    """A connection of the test itself, past every layer under test."""

    def __init__(self, connection: Any, schema: str) -> None:
        self.connection = connection
        self.schema = schema

    def sql(self, text: str) -> str:
        """`text`, in which `penstock.` stands for the namespace."""
        return text.replace("penstock.", f"{self.schema}.")

    async def fetch(self, text: str, *values: Any) -> list[Any]:
        rows: list[Any] = await self.connection.fetch(self.sql(text), *values)
        return rows

    async def fetchval(self, text: str, *values: Any) -> Any:
        return await self.connection.fetchval(self.sql(text), *values)

    async def execute(self, text: str, *values: Any) -> None:
        await self.connection.execute(self.sql(text), *values)


@asynccontextmanager
async def psql(url: str) -> AsyncIterator[Psql]:
    address = parse(url)
    connection = await asyncpg.connect(address.dsn)
    try:
        yield Psql(connection, address.schema)
    finally:
        await connection.close()


@asynccontextmanager
async def documents_at(url: str) -> AsyncIterator[PostgresDocuments]:
    """A corpus in a store of its own."""
    store = PostgresStore(Database(parse(url)))
    await store.open()
    documents = store.documents()
    try:
        await documents.open()
        yield documents
        await documents.close()
    finally:
        await store.close()
