"""Stores jobs in a caller's transaction: one statement, whose value and answer are one text each.
So it is the same over every driver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import asyncpg

from penstock import runtime
from penstock.adapters.callers import Driver, async_driver, driver, is_async, is_django
from penstock.adapters.postgres.address import PostgresAddress
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.enqueue import Stored, refuse
from penstock.adapters.postgres.errors import TROUBLE, explain
from penstock.errors import ConfigError, PenstockError
from penstock.runtime.calling_thread import calling_thread, finished

_STORE = "SELECT penstock.store_for_caller_1($1::text)"
_STORE_BURSTS = "SELECT penstock.store_bursts_1($1::text)"
_ROWS = (
    "SELECT coalesce(json_agg(row_to_json(r)), '[]')::text FROM (SELECT {job_columns}"
    " FROM penstock.jobs WHERE id IN (SELECT json_array_elements_text($1::json))) AS r"
)
_NOT_THERE = ("3F000", "42883", "42P01")
"""There is no such schema, function or table."""
_NOT_OPEN = (
    "conn= needs a transaction open on it, as by `async with conn.transaction():` of asyncpg; "
    "this connection commits by itself whatever it is told"
)


class CallersTransaction:
    """The transaction that is open on `conn`."""

    def __init__(self, database: Database, conn: Any) -> None:
        self._database = database
        # Known here, or refused before anything is done for it.
        self._async = is_async(conn)
        self._thread = calling_thread()
        self._conn = driver(conn).conn if is_django(conn) and self._thread is None else conn

    async def store(self, batch: Mapping[str, Any], at: float) -> Stored:
        """Store a batch, as `store_for_caller_1` takes it, or `store_bursts_1`; its refusals as
        errors."""
        statement = _STORE_BURSTS if "bursts" in batch else _STORE
        told = json.loads(await self._ask(statement, json.dumps(batch, ensure_ascii=False)))
        match told.get("refused"):
            case None:
                return Stored(at, told["found"])
            case "queue":
                raise ConfigError(
                    f"conn= is a connection to another database than {self._database.address.shown}"
                    ", which has a queue of its own under this name"
                )
            case code:
                refuse(code, told["detail"], told["hint"])
                raise AssertionError(code)

    async def rows(self, ids: list[str]) -> list[dict[str, Any]]:
        """The rows of these jobs as the transaction sees them: `job_columns` by name."""
        rows: list[dict[str, Any]] = json.loads(await self._ask(_ROWS, json.dumps(ids)))
        return rows

    async def _ask(self, statement: str, value: str) -> str:
        text = self._database.sql(statement)
        try:
            if self._async:
                return await _answer_awaited(await async_driver(self._conn), text, value)

            def ask() -> str:
                return _answer(driver(self._conn), text, value)

            if self._thread is not None:
                return await self._thread.call(ask)
            return await finished(asyncio.ensure_future(runtime.in_thread(ask)))
        except PenstockError:
            raise
        except Exception as error:
            raise _explained(error, self._database.address) from error


async def _answer_awaited(found: Driver, text: str, value: str) -> str:
    answer: str
    match found:
        case Driver("asyncpg", conn):
            if not conn.is_in_transaction():
                raise ConfigError(_NOT_OPEN)
            answer = await conn.fetchval(text, value)
        case Driver("psycopg", conn):
            from psycopg import AsyncRawCursor
            from psycopg.rows import tuple_row

            _needs_transaction(conn)
            async with AsyncRawCursor(conn, row_factory=tuple_row) as cursor:
                await cursor.execute(text, [value])
                ((answer,),) = await cursor.fetchall()
        case _:
            raise _other(found)
    return answer


def _answer(found: Driver, text: str, value: str) -> str:
    answer: str
    match found:
        case Driver("psycopg", conn):
            from psycopg import RawCursor
            from psycopg.rows import tuple_row

            _needs_transaction(conn)
            with RawCursor(conn, row_factory=tuple_row) as cursor:
                cursor.execute(text, [value])
                ((answer,),) = cursor.fetchall()
        case Driver("psycopg2", conn):
            from psycopg2.extensions import cursor as plain

            if conn.autocommit and not conn.get_transaction_status():
                raise ConfigError(_NOT_OPEN)
            with conn.cursor(cursor_factory=plain) as cursor:
                cursor.execute(text.replace("$1", "%s"), [value])
                ((answer,),) = cursor.fetchall()
        case _:
            raise _other(found)
    return answer


def _needs_transaction(conn: Any) -> None:
    """Without autocommit psycopg opens one by itself, and only its user ends it."""
    if conn.autocommit and not conn.info.transaction_status:
        raise ConfigError(_NOT_OPEN)


def _other(found: Driver) -> ConfigError:
    return ConfigError(
        f"conn= is used over {found.name}, and the queue is in PostgreSQL: enqueue with a "
        "connection to its database"
    )


def _explained(error: Exception, address: PostgresAddress) -> Exception:
    """The queue's error for one of any driver; what is none of a driver's stays as it is."""
    cause: BaseException | None = error
    while cause is not None:
        code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        if code in _NOT_THERE:
            return ConfigError(
                f"conn= is a connection to a database that has no queue of {address.shown}"
                f" ({cause})"
            )
        if isinstance(code, str):
            known = asyncpg.PostgresError.get_message_class_for_sqlstate(code)
            return explain(known(str(cause)), address)
        if isinstance(cause, TROUBLE) or type(cause).__module__.startswith("psycopg"):
            return explain(cause, address)
        cause = getattr(cause, "orig", None) or cause.__cause__
    return error
