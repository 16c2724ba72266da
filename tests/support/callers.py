"""Transactions as callers have them: one way for each driver and framework, all used alike."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg2
from sqlalchemy import Engine, NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from penstock.adapters.postgres.address import parse


@dataclass
class Caller:
    """A connection of a caller, with a transaction that its driver begins as it usually does."""

    conn: Any
    statement: Callable[[str], Any]
    """A statement as the connection takes it."""
    namespace: str = ""

    async def execute(self, sql: str) -> Any:
        """The first value of the first row, if it has any."""
        said = self.statement(sql.replace("penstock.", self.namespace))
        found = self.conn.fetch(said) if hasattr(self.conn, "fetch") else self.conn.execute(said)
        found = await found if isawaitable(found) else found
        if hasattr(found, "fetchone"):
            returns = getattr(found, "returns_rows", getattr(found, "description", None))
            found = [await _done(found.fetchone())] if returns else []
        return found[0][0] if found and found[0] else None

    async def commit(self) -> None:
        await self._end("commit")

    async def rollback(self) -> None:
        await self._end("rollback")

    async def _end(self, how: str) -> None:
        if hasattr(self.conn, how):
            await _done(getattr(self.conn, how)())
        else:
            await self.conn.execute(how)


async def _done(outcome: Any) -> Any:
    return await outcome if isawaitable(outcome) else outcome


Way = Callable[[str], Any]
POSTGRES: dict[str, Way] = {}
SQLITE: dict[str, Way] = {}
"""The ways, by name: each takes the queue's URL."""


def _way(of: dict[str, Way]) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        of[make.__name__] = asynccontextmanager(make)
        return make

    return add


@_way(POSTGRES)
async def asyncpg_connection(url: str) -> AsyncIterator[Caller]:
    conn = await asyncpg.connect(parse(url).dsn)
    try:
        await conn.execute("BEGIN")
        yield Caller(conn, str, _schema(url))
    finally:
        await conn.close()


@_way(POSTGRES)
async def psycopg_connection(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(parse(url).dsn) as conn:
        yield Caller(conn, str, _schema(url))


@_way(POSTGRES)
async def psycopg_async_connection(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(parse(url).dsn) as conn:
        yield Caller(conn, str, _schema(url))


@_way(POSTGRES)
async def sqlalchemy_connection(url: str) -> AsyncIterator[Caller]:
    with closing_engine(psycopg_engine(url)) as engine, engine.connect() as conn:
        yield Caller(conn, text, _schema(url))


@_way(POSTGRES)
async def sqlalchemy_session(url: str) -> AsyncIterator[Caller]:
    with closing_engine(psycopg_engine(url)) as engine, Session(engine) as session:
        yield Caller(session, text, _schema(url))


@_way(POSTGRES)
async def sqlalchemy_session_over_psycopg2(url: str) -> AsyncIterator[Caller]:
    dsn = parse(url).dsn
    engine = create_engine(
        "postgresql+psycopg2://", creator=lambda: psycopg2.connect(dsn), poolclass=NullPool
    )
    with closing_engine(engine), Session(engine) as session:
        yield Caller(session, text, _schema(url))


@_way(POSTGRES)
async def sqlalchemy_async_connection(url: str) -> AsyncIterator[Caller]:
    async with async_engine(url) as engine, engine.connect() as conn:
        yield Caller(conn, text, _schema(url))


@_way(POSTGRES)
async def sqlalchemy_async_session(url: str) -> AsyncIterator[Caller]:
    async with async_engine(url) as engine, AsyncSession(engine) as session:
        yield Caller(session, text, _schema(url))


@_way(SQLITE)
async def sqlite3_connection(url: str) -> AsyncIterator[Caller]:
    with closing(sqlite3.connect(_file(url))) as conn:
        yield Caller(conn, str)


@_way(SQLITE)
async def sqlite3_connection_that_has_begun(url: str) -> AsyncIterator[Caller]:
    """And that has rows of its own."""
    with closing(sqlite3.connect(_file(url), isolation_level=None)) as conn:
        conn.row_factory = lambda cursor, row: [*row, "more"]
        conn.execute("BEGIN")
        yield Caller(conn, str)


@_way(SQLITE)
async def aiosqlite_connection(url: str) -> AsyncIterator[Caller]:
    async with aiosqlite.connect(_file(url)) as conn:
        yield Caller(conn, str)


@_way(SQLITE)
async def sqlalchemy_sqlite_session(url: str) -> AsyncIterator[Caller]:
    with closing_engine(create_engine(url)) as engine, Session(engine) as session:
        yield Caller(session, text)


@_way(SQLITE)
async def sqlalchemy_aiosqlite_session(url: str) -> AsyncIterator[Caller]:
    async with AsyncExitStack() as opened:
        engine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
        opened.push_async_callback(engine.dispose)
        yield Caller(await opened.enter_async_context(AsyncSession(engine)), text)


def psycopg_engine(url: str) -> Engine:
    return create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(parse(url).dsn), poolclass=NullPool
    )


@asynccontextmanager
async def async_engine(url: str) -> AsyncIterator[AsyncEngine]:
    async def connect(*_: Any) -> Any:
        return await asyncpg.connect(parse(url).dsn)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        yield engine
    finally:
        await engine.dispose()


@contextmanager
def closing_engine(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.dispose()


def _schema(url: str) -> str:
    return f"{parse(url).schema}."


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))
