"""The servers that contenders share, private to a run and with fsync on for all of them."""

from __future__ import annotations

import asyncio
import itertools
from types import TracebackType
from typing import Any, Protocol, Self

import asyncpg
import redis

from tests.support.database_servers import PostgresServer, PrivateServer, RedisServer


class Server(Protocol):
    """A server that is up."""

    def title(self) -> str: ...

    def fresh(self) -> str:
        """The URL of an empty place."""
        ...

    def connections(self) -> int:
        """Connections of clients, as the server counts them; ours that asks is left out."""
        ...


class _Running:
    """Leaving the block stops the server and deletes what it stored."""

    def __init__(self, server: PrivateServer) -> None:
        self._server = server

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.remove()


class Valkey(_Running):
    """With an append-only file, synced at every write."""

    def __init__(self) -> None:
        server = RedisServer("valkey", durable=True)
        super().__init__(server)
        self._url = server.url

    def title(self) -> str:
        with redis.Redis.from_url(self._url) as client:
            version = client.info("server")["valkey_version"]
        return f"on Redis (Valkey {version}, append-only file with fsync at every write)"

    def fresh(self) -> str:
        with redis.Redis.from_url(self._url) as client:
            client.flushall()
        return self._url

    def connections(self) -> int:
        with redis.Redis.from_url(self._url) as client:
            return len(client.client_list()) - 1


class Postgres(_Running):
    """Each place is a database of its own."""

    def __init__(self) -> None:
        server = PostgresServer(durable=True)
        super().__init__(server)
        self._url = server.url
        self._numbers = itertools.count(1)

    def title(self) -> str:
        version = self._ask("SHOW server_version").split()[0]
        return f"on PostgreSQL ({version}, fsync on)"

    def fresh(self) -> str:
        name = f"bench_{next(self._numbers)}"
        self._ask(f"CREATE DATABASE {name}")
        return f"{self._url.rpartition('/')[0]}/{name}"

    def connections(self) -> int:
        count: int = self._ask(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return count

    def _ask(self, statement: str) -> Any:
        async def ask() -> Any:
            connection = await asyncpg.connect(self._url)
            try:
                return await connection.fetchval(statement)
            finally:
                await connection.close()

        return asyncio.run(ask())
