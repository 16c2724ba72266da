"""Connections to the server: at most five per process.

One for the trips of the dispatcher, one that hears wake-ups, one of the thread that renews
leases, and two that everybody else shares: callers wait for a free one. They are made when first
needed and made anew after an error; nothing is tried twice here, because only the caller knows
whether that is safe.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

from redis import exceptions
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool as BlockingPool
from redis.retry import Retry

from penstock.adapters.redis.address import RedisAddress
from penstock.adapters.redis.errors import explain
from penstock.adapters.redis.scripts import given, script
from penstock.adapters.semaphore import CountingSemaphore
from penstock.errors import ConfigError, QueueError

ANSWER_SECONDS = 5.0
"""A server that says nothing for this long is taken to be gone."""
CONNECT_SECONDS = 3.0
SHARED = 2
IDLE_SECONDS = 0.01

FAULTS = (exceptions.RedisError, OSError)


_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "encoding": "utf-8",
    # Bytes that are no text fail the job whose they are, and not every trip that meets them.
    "encoding_errors": "surrogateescape",
    "decode_responses": True,
    "client_name": "penstock",
    "socket_connect_timeout": CONNECT_SECONDS,
    "socket_keepalive": True,
}


def command(name: str, tag: str, ask: dict[str, Any], blobs: Sequence[str]) -> list[str | int]:
    return ["EVALSHA", script(name).digest, 1, tag, json.dumps(given(ask)), *blobs]


def in_full(name: str, words: list[str | int]) -> list[str | int]:
    """The same call for a server that does not know the script (any more)."""
    return ["EVAL", script(name).text, *words[2:]]


class RedisConnection(Protocol):
    """The part of the client library's connection interface that is used."""

    async def connect(self) -> None: ...

    async def send_command(self, *words: str | int) -> None: ...

    async def read_response(
        self, *, timeout: float | None = None, disconnect_on_error: bool = True
    ) -> Any: ...

    async def can_read(self) -> bool: ...

    async def disconnect(self, nowait: bool = False) -> None: ...


class Channel:
    """One connection, used by one caller at a time."""

    def __init__(self, make: Callable[[], RedisConnection]) -> None:
        self._make = make
        self._connection: RedisConnection | None = None
        self._used_at = 0.0

    async def run(self, name: str, tag: str, ask: dict[str, Any], blobs: Sequence[str]) -> Any:
        words = command(name, tag, ask, blobs)
        try:
            return await self.send(words)
        except exceptions.NoScriptError:
            return await self.send(in_full(name, words))

    async def send(self, words: Sequence[str | int]) -> Any:
        if self._connection is None:
            self._connection = self._make()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._connection.connect()  # does nothing if it is
                await self._connection.send_command(*words)
                answer = await self._connection.read_response()
            self._used_at = time.monotonic()
            return answer
        except exceptions.ResponseError:
            raise  # it was an answer
        except BaseException:
            # Its answer may still come, for whoever asks next. (Also when cancelled.)
            await self.close()
            raise

    async def freshen(self) -> None:
        """Drop a connection that the server has closed while it was idle, as by a restart: a
        caller must not get an error for that, before anything was sent."""
        if self._connection is None or time.monotonic() < self._used_at + IDLE_SECONDS:
            return
        for _ in range(2):  # the event loop looks at its sockets, then tells of what it saw
            await asyncio.sleep(0)
        if await self._connection.can_read():
            await self.close()

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)


class Connections:
    """See the module. Belongs to the event loop it is first used in."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        # Pools only to make connections: they know how to read a URL. (The library's are untyped.)
        factory, blocking = cast(Any, ConnectionPool), cast(Any, BlockingPool)
        never, options = NoBackoff(), _OPTIONS
        try:
            # Time-outs are kept here: where the library does, before Python 3.12, a cancellation
            # can be lost.
            self._factory = factory.from_url(
                address.url, retry=AsyncRetry(never, 0), socket_timeout=None, **options
            )
            self._blocking = blocking.from_url(
                address.url, retry=Retry(never, 0), socket_timeout=ANSWER_SECONDS, **options
            )
            self._factory.make_connection()
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the queue's URL has a part that is not understood: {error}"
            ) from None
        self._trips = Channel(self.make)
        self._free: list[Channel] = []
        self._closed = True
        self._new_locks()

    def _new_locks(self) -> None:
        self._trip_lock = asyncio.Lock()
        self._places = CountingSemaphore(SHARED)

    @property
    def waiting(self) -> int:
        """How many wait for a shared connection."""
        return self._places.waiting

    def make(self) -> RedisConnection:
        """A connection that is not connected yet; none after the end, which nobody would close."""
        self._check_open()
        connection: RedisConnection = self._factory.make_connection()
        return connection

    def make_blocking(self) -> Any:
        """A connection for a thread of its own."""
        return self._blocking.connection_class(**self._blocking.connection_kwargs)

    def open(self) -> None:
        self._new_locks()  # they belong to the event loop that uses them
        self._closed = False

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            async with self._trip_lock:
                await self._trips.close()
        finally:
            while self._free:
                await self._free.pop().close()

    async def trip(self, name: str, ask: dict[str, Any], *blobs: str) -> Any:
        """Run a script on the dispatcher's own connection."""
        self._check_open()
        async with self._trip_lock:
            try:
                return await self._run(self._trips, name, ask, blobs)
            finally:
                if self._closed:  # by one that did not wait for the end of this
                    await self._trips.close()

    async def call(self, name: str, ask: dict[str, Any], *blobs: str) -> Any:
        """Run a script on a shared connection."""
        async with self._shared() as channel:
            return await self._run(channel, name, ask, blobs)

    async def command(self, *words: str | int) -> Any:
        """Send a plain command on a shared connection."""
        async with self._shared() as channel:
            try:
                return await channel.send(words)
            except FAULTS as error:
                raise explain(error, self.address.shown) from error

    @asynccontextmanager
    async def _shared(self) -> AsyncIterator[Channel]:
        self._check_open()
        async with self._places:
            channel = self._free.pop() if self._free else Channel(self.make)
            try:
                await channel.freshen()
                yield channel
            finally:
                self._free.append(channel)
                if self._closed:
                    await channel.close()

    def _check_open(self) -> None:
        if self._closed:
            raise QueueError("the queue is not open; use it inside `async with app:`")

    async def _run(
        self, channel: Channel, name: str, ask: dict[str, Any], blobs: Sequence[str]
    ) -> Any:
        try:
            return await channel.run(name, self.address.tag, ask, blobs)
        except FAULTS as error:
            raise explain(error, self.address.shown) from error


class BlockingChannel:
    """A connection of one thread."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Any = None

    def run(self, name: str, ask: dict[str, Any]) -> Any:
        address = self._connections.address
        words = command(name, address.tag, ask, ())
        try:
            try:
                return self._send(words)
            except exceptions.NoScriptError:
                return self._send(in_full(name, words))
        except (exceptions.RedisError, OSError) as error:
            raise explain(error, address.shown) from error

    def _send(self, words: Sequence[str | int]) -> Any:
        if self._connection is None:
            connection = self._connections.make_blocking()
            connection.connect()
            self._connection = connection
        try:
            self._connection.send_command(*words)
            return self._connection.read_response()
        except exceptions.ResponseError:
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.disconnect()
