"""Connections to the server, and transactions.

A connection is made when it is needed and thrown away when anything is wrong with it. Every
command has a time limit, so that a server that is gone without a word is noticed.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, lru_cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import asyncpg

from penstock.adapters.postgres.address import PostgresAddress
from penstock.adapters.postgres.errors import PASSING, TROUBLE, connection_lost, explain
from penstock.adapters.queue_clock import QueueClock
from penstock.adapters.semaphore import CountingSemaphore
from penstock.adapters.sql.dialect import Row, Sql, include, load, numbered
from penstock.errors import QueueError
from penstock.ports.queue import Topic

log = logging.getLogger("penstock.postgres")
T = TypeVar("T")

Connection = Any
"""asyncpg has no types."""
_NOT_ASKED = SimpleNamespace(name="not asked")
"""Stands for the statement that would have asked: the caller looks only at its name."""

CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 5.0
LONG_SECONDS = 60.0
"""For what may read the whole table: counts, searches without an index."""
TRUSTED_SECONDS, PING_SECONDS = 1.0, 2.0
"""A connection that was idle for longer is asked first whether it is still one."""
FIRST_OWN_TYPE = 16384
"""Types below this number are PostgreSQL's own, and the same in every database."""
TRIES = 5
"""How often a transaction that got in another's way is tried."""
CLOSE_SECONDS = 5.0
"""Whoever uses a connection of a pool that is closed has so long to give it back."""

_BEGIN = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('synchronous_commit',
                  CASE WHEN $1 THEN 'off' ELSE current_setting('synchronous_commit') END, true),
       set_config('lock_timeout', '3s', true), set_config('statement_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', '2s', true),
       extract(epoch FROM clock_timestamp())::float8
"""
"""Statements go by index whatever the statistics say, which for a table that fills and empties
within seconds are always wrong. A process that is frozen in here is thrown out after 2 s."""


@cache
def _statements() -> dict[str, str]:
    return load("postgres", files("penstock.adapters.postgres") / "sql")


@lru_cache(2000)
def statement(name_or_text: str, schema: str) -> str:
    """A statement by its name, or a text that mentions `penstock.`, for a namespace."""
    if name_or_text.isidentifier():
        return in_schema(_statements()[name_or_text], schema)
    return in_schema(include(name_or_text, _statements()), schema)


@lru_cache(2000)
def numbered_statement(name_or_text: str, schema: str) -> tuple[str, tuple[str, ...]]:
    """As `statement`, for values given by name; and these names, in their order."""
    return numbered(statement(name_or_text, schema))


def in_schema(text: str, schema: str) -> str:
    """SQL text, in which `penstock.` stands for the namespace, for a given one."""
    return text.replace("penstock.", f"{schema}.")


class TypedConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection that knows the built-in types from the first one that asked.

    asyncpg asks every new connection for the types it meets first, arrays above all: 6 to 9 ms of
    the server's time for rows that are the same in every database of a version.
    """

    _rows: ClassVar[dict[tuple[int, frozenset[int]], Any]] = {}
    """Answers by the server's major version and the types asked for."""

    async def _introspect_types(self, typeoids: Any, timeout: float | None) -> Any:
        key = (self.get_server_version().major, frozenset(typeoids))
        if key in self._rows:
            return self._rows[key], _NOT_ASKED
        rows, statement = await super()._introspect_types(typeoids, timeout)
        if max(row["oid"] for row in rows) < FIRST_OWN_TYPE:
            self._rows[key] = rows
        return rows, statement


class Database:
    """Connection settings for one address."""

    def __init__(self, address: PostgresAddress, *, poll_only: bool = False) -> None:
        self.address = address
        self.poll_only = poll_only
        self.clock = QueueClock()

    async def connect(self, purpose: str) -> Connection:
        """A new connection. QueueError when there is none to be had."""
        try:
            return await asyncpg.connect(
                self.address.dsn,
                connection_class=TypedConnection,
                timeout=CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                # A pooler may hand each transaction to another session, which has not prepared it.
                statement_cache_size=0 if self.poll_only else 200,
                server_settings={
                    "application_name": f"penstock {purpose} {self.address.namespace}"
                },
            )
        except TROUBLE as error:
            raise explain(error, self.address) from error
        except ValueError as error:  # what the driver makes of a bad option of the URL
            raise explain(error, self.address) from error

    @asynccontextmanager
    async def session(self, purpose: str) -> AsyncIterator[Connection]:
        """A new connection for a while. What goes wrong with it becomes a QueueError."""
        connection = await self.connect(purpose)
        try:
            try:
                yield connection
            finally:
                await close(connection)
        except TROUBLE as error:
            raise explain(error, self.address) from error

    def sql(self, name_or_text: str) -> str:
        """A statement by its name, or a text that mentions `penstock.`"""
        return statement(name_or_text, self.address.schema)


class Transaction:
    """A transaction under way. `now` is the queue's clock when it began, `seconds` what each
    statement may take.

    A statement is a name or a text. Its values are given in their order or, as shared operations do
    (see `penstock.adapters.sql.dialect.Sql`), by name."""

    __slots__ = ("connection", "database", "now", "seconds", "topics", "woken")

    def __init__(
        self,
        database: Database,
        connection: Connection,
        now: float,
        seconds: float = COMMAND_SECONDS,
    ) -> None:
        self.database = database
        self.connection = connection
        self.now = now
        self.seconds = seconds
        self.topics: set[Topic] = set()
        self.woken: list[tuple[str, str]] = []
        """Lines (lane, kind) that slots were freed for."""

    async def fetch(self, statement: str, /, *values: Any, **named: Any) -> list[Row]:
        text, given = self._bound(statement, values, named)
        rows: list[Row] = await self.connection.fetch(text, *given, timeout=self.seconds)
        return rows

    async def one(self, statement: str, /, *values: Any, **named: Any) -> Row:
        """The first row; None: there is none."""
        text, given = self._bound(statement, values, named)
        return await self.connection.fetchrow(text, *given, timeout=self.seconds)

    async def fetchval(self, statement: str, /, *values: Any, **named: Any) -> Any:
        """The first value of the first row."""
        text, given = self._bound(statement, values, named)
        return await self.connection.fetchval(text, *given, timeout=self.seconds)

    async def execute(self, statement: str, /, *values: Any, **named: Any) -> int:
        """Run a statement; how many rows it changed."""
        text, given = self._bound(statement, values, named)
        status: str = await self.connection.execute(text, *given, timeout=self.seconds)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdecimal() else 0

    async def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        """Run a statement once for each of `rows`."""
        text, names = numbered_statement(statement, self.database.address.schema)
        given = [[row[name] for name in names] for row in rows]
        await self.connection.executemany(text, given, timeout=self.seconds)

    def _bound(
        self, statement: str, values: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[str, Sequence[Any]]:
        if not named:
            return self.database.sql(statement), values
        text, names = numbered_statement(statement, self.database.address.schema)
        return text, [named[name] for name in names]

    def wake(self, topic: Topic) -> None:
        """Send this wake-up when the transaction is committed."""
        self.topics.add(topic)


def own(tx: Sql) -> Transaction:
    """The transaction that a shared operation was given."""
    assert isinstance(tx, Transaction)
    return tx


class Pool:
    """Up to `size` connections, made when needed; whoever finds none waits."""

    def __init__(self, database: Database, purpose: str, size: int) -> None:
        self._database = database
        self._purpose = purpose
        self._free = CountingSemaphore(size)
        self._size = size
        self._idle: list[tuple[Connection, float]] = []
        self._used: set[Connection] = set()
        self.made = 0
        """Connections it has made so far: each may be to a server that knows less than the last."""
        self._abandoned: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait for a connection."""
        return self._free.waiting

    async def close(self) -> None:
        """End its connections. Those in use may be given back first; but none is left open, also
        if this is cancelled."""
        if self._closed:
            return
        self._closed = True
        idle = [connection for connection, _ in self._idle]
        self._idle.clear()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for connection in idle:
                    await close(connection)
                for _ in range(self._size):
                    await self._free.acquire()
                await asyncio.gather(*self._abandoned)
        except TimeoutError:
            log.debug("connections are ended while they are in use")
        finally:
            for connection in (*idle, *self._used):
                connection.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for a while. What goes wrong with it becomes a QueueError."""
        self._check_open()
        async with self._free:
            self._check_open()
            connection = await self._take()
            self._used.add(connection)
            try:
                yield connection
            except TROUBLE as error:
                if connection_lost(error):
                    self._drop(connection)
                else:
                    await self._give_back(connection)
                raise explain(error, self._database.address) from error
            except Exception:
                await self._give_back(connection)
                raise
            except asyncio.CancelledError:
                self._abandon(connection)
                raise
            except BaseException:  # the program ends, or nobody finished what was begun
                connection.terminate()
                raise
            finally:
                self._used.discard(connection)
            await self._give_back(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise QueueError("the queue is not open; use it inside `async with app:`")

    async def write(
        self,
        operation: Callable[[Transaction], Awaitable[T]],
        *,
        soft: bool = False,
        seconds: float = COMMAND_SECONDS,
    ) -> T:
        """Run `operation` in a transaction; again, if it and another got in each other's way.
        A `soft` one may be forgotten by a crash of the server: it does not wait for the disk.
        Each of its statements may take `seconds`."""
        for n in range(1, TRIES + 1):
            async with self.connection() as connection:
                try:
                    return await self._transact(connection, operation, soft, seconds)
                except PASSING as error:
                    if n == TRIES:
                        raise
                    log.debug("trying a transaction again: %s", error)
            await asyncio.sleep(random.uniform(0.0, 0.01 * n))  # noqa: S311 (not a secret)
        raise AssertionError("unreachable")

    async def _transact(
        self,
        connection: Connection,
        operation: Callable[[Transaction], Awaitable[T]],
        soft: bool,
        seconds: float,
    ) -> T:
        await connection.execute("BEGIN")
        try:
            clock = self._database.clock
            sent = clock.local()
            # The server gives up before the client does, so the connection can be used again.
            patience = f"{seconds - 1:.0f}s"
            now = (await connection.fetchrow(_BEGIN, soft, patience))[-1]
            clock.sample(sent, now)
            tx = Transaction(self._database, connection, now, seconds)
            outcome = await operation(tx)
            if tx.woken:
                tx.wake(Topic.READY)
            await connection.execute(self._ring(tx.topics) + "COMMIT")
        except Exception as error:
            if not isinstance(error, TROUBLE) or not connection_lost(error):
                await connection.execute("ROLLBACK")
            raise
        return outcome

    def _ring(self, topics: set[Topic]) -> str:
        if not topics or self._database.poll_only:
            return ""
        names = ", ".join(sorted(f"'{topic.value}'" for topic in topics))
        return self._database.sql(f"SELECT penstock.ring(ARRAY[{names}]); ")

    async def _take(self) -> Connection:
        while self._idle:
            connection, since = self._idle.pop()
            if connection.is_closed():
                continue
            if time.monotonic() - since < TRUSTED_SECONDS:
                return connection
            try:
                await connection.execute("SELECT 1", timeout=PING_SECONDS)
                return connection
            except TROUBLE as error:
                log.debug("a connection went dead while it was idle: %s", error)
                self._drop(connection)
            except BaseException:  # cancelled: it is in nobody's hands yet
                connection.terminate()
                raise
        connection = await self._database.connect(self._purpose)
        self.made += 1
        if self._closed:  # it took longer than the pool waited
            connection.terminate()
            self._check_open()
        return connection

    async def _give_back(self, connection: Connection) -> None:
        if connection.is_closed():
            return
        if connection.is_in_transaction():  # left in the middle: nobody can tell what of
            connection.terminate()
        elif self._closed:
            await close(connection)
        else:
            self._idle.append((connection, time.monotonic()))

    def _abandon(self, connection: Connection) -> None:
        """Whoever used it was cancelled, perhaps because it did not answer, and does not wait for
        it to be closed. Just to hang up is not enough: the server does not look at a connection
        while it works, and would go on with what nobody wants."""
        telling = asyncio.create_task(close(connection), name="penstock-abandon")
        self._abandoned.add(telling)
        telling.add_done_callback(self._abandoned.discard)

    def _drop(self, connection: Connection) -> None:
        """The others are likely to be as dead as this one."""
        for one in (connection, *(idle for idle, _ in self._idle)):
            one.terminate()
        self._idle.clear()


async def close(connection: Connection) -> None:
    """End a connection, politely where the server still listens."""
    try:
        await connection.close(timeout=1.0)
    except TROUBLE as error:
        log.debug("closing a connection: %s", error)
        connection.terminate()
