"""A PostgreSQL server and its asynchronous replica, which can be cut off and take over."""

from __future__ import annotations

import subprocess
from types import TracebackType
from typing import Self

from tests.support.database_servers import PostgresServer, PrivateServer
from tests.support.postgres import psql
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until


class Replica(PostgresServer):
    """A copy of a running server that follows it."""

    def __init__(self, primary: PostgresServer, address: str) -> None:
        """`address` is where it finds the primary: it follows over the same way."""
        PrivateServer.__init__(self, "postgres")  # its data come from the primary
        self._durable, self._bin = False, primary._bin
        self.own(self.folder)
        subprocess.run(
            [
                *(str(self._bin / "pg_basebackup"), "-d", address, "-D", str(self.folder / "data")),
                *("--write-recovery-conf", "--checkpoint=fast", "--no-sync"),
            ],
            check=True,
            cwd=self.folder,
            user=self._user(),
        )


class Pair:
    """A primary with a replica. Clients use `url`, which leads to whichever serves them."""

    def __enter__(self) -> Self:
        self.primary = PostgresServer().start()
        self._clients = Proxy(self.primary.url).__enter__()
        self._stream = Proxy(self.primary.url).__enter__()
        self.replica = Replica(self.primary, self._stream.url)
        self.replica.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in (self.replica, self.primary):
            server.remove()
        for proxy in (self._stream, self._clients):
            proxy.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        return self._clients.url

    async def in_step(self) -> None:
        """Wait until the replica has all that the primary has just now."""
        async with psql(self.primary.url) as primary, psql(self.replica.url) as replica:
            here = await primary.fetchval("SELECT pg_current_wal_lsn()::text")
            follows = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
            await until(lambda: replica.fetchval(follows, here), "the replica to follow")

    def cut(self) -> None:
        """From now on the replica hears nothing: whatever the primary accepts will be lost."""
        self._stream.leave()

    async def fail_over(self) -> None:
        """The primary dies, and the replica takes its place."""
        self.primary.kill()
        async with psql(self.replica.url) as replica:
            assert await replica.fetchval("SELECT pg_promote()")
        self._clients.turn_to(self.replica.url)
