"""A namespace of its own in the PostgreSQL server that tests share, and a look into it."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import asyncpg

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.adapters.postgres.store import PostgresStore
from tests.support.database_servers import postgres_url


def new_url(server: str | None = None) -> str:
    """Where a new queue can be."""
    return f"{server or postgres_url()}?namespace=test_{uuid.uuid4().hex[:24]}"


_clean: dict[str, str] = {}
"""The statement that makes a namespace as it was when it was new, by URL."""
_free: dict[str, list[str]] = {}
"""Namespaces nobody uses, by what was opened in them."""

BORN_WITH_ROWS = ("migrations", "document_migrations", "queue")
LENT_AT_MOST = 50
"""Times. Nobody vacuums: what was deleted is still read."""
_lent: Counter[str] = Counter()

_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'
ORDER BY relname"""
_SEQUENCES = """
SELECT seqrelid::regclass::text, seqstart FROM pg_sequence JOIN pg_class ON oid = seqrelid
WHERE relnamespace = $1::text::regnamespace ORDER BY 1"""


def borrow_url(opened: str) -> str:
    """A namespace that looks new, for a test that gives it back: to make one takes longer than most
    tests. `opened` names what the test opens there; others are not lent what it leaves behind."""
    free = _free.setdefault(opened, [])
    return free.pop() if free else new_url()


def give_back(opened: str, url: str) -> None:
    """Empty a namespace that was borrowed, and lend it again."""
    _lent[url] += 1
    if _lent[url] < LENT_AT_MOST and _in_a_thread(_empty(url)):
        _free[opened].append(url)


def execute(url: str, text: str, *values: Any) -> None:
    """Do something to the tables, in a thread: tests call it inside their event loop."""

    async def run() -> None:
        async with psql(url) as mine:
            await mine.execute(text, *values)

    _in_a_thread(run())


@cache
def _thread() -> tuple[ThreadPoolExecutor, asyncio.Runner]:
    """With an event loop that outlives those of tests, and so do its connections."""
    return ThreadPoolExecutor(1, "postgres"), asyncio.Runner()


def _in_a_thread(work: Any) -> Any:
    thread, runner = _thread()
    return thread.submit(runner.run, work).result()


_kept: dict[str, Any] = {}
"""A connection to each server, by its URL: what a new one reads first takes longer than to empty
a namespace."""


async def _empty(url: str) -> bool:
    """Whether the namespace was emptied: it was not if nobody ever made it."""
    address = parse(url)
    if address.dsn not in _kept or _kept[address.dsn].is_closed():
        # Connections that a test killed may still hold locks.
        options = {"lock_timeout": "20s"}
        _kept[address.dsn] = await asyncpg.connect(address.dsn, server_settings=options)
    mine = Psql(_kept[address.dsn], address.schema)
    if not await mine.fetchval("SELECT to_regnamespace($1) IS NOT NULL", mine.schema):
        return False
    if url not in _clean:
        _clean[url] = await _reset_statement(mine)
    await mine.connection.execute(_clean[url])
    return True


async def _reset_statement(mine: Psql) -> str:
    """Rows that a new namespace has are kept; all others were made by tests."""
    schema = mine.schema
    reset = []
    for (table,) in await mine.fetch(_TABLES, schema):
        if table not in BORN_WITH_ROWS:
            reset.append(f'DELETE FROM {schema}."{table}"')
    for sequence, start in await mine.fetch(_SEQUENCES, schema):
        reset.append(f"SELECT setval('{sequence}', {start}, false)")
    return "; ".join(reset)


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
    """A document store in a store of its own."""
    store = PostgresStore(Database(parse(url)))
    await store.open()
    documents = store.documents()
    try:
        await documents.open()
        yield documents
        await documents.close()
    finally:
        await store.close()
