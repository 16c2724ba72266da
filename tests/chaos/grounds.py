"""Where the chaos happens: a queue, and what can be done to the server it is on."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.database_servers import PostgresServer, PrivateServer, RedisServer
from tests.support.tcp_proxy import Proxy

MAX_DELAY = 0.05
GONE_SECONDS = 1.0


class Ground:
    """A queue in a file: there is no server to be cruel to."""

    strikes: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'jobs.db'}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    async def strike(self, what: str, chance: random.Random) -> None:
        raise NotImplementedError


class ServerGround(Ground):
    """A queue on a server of its own, behind a network of its own."""

    strikes = ("restart", "crash", "drop", "swallow", "half-close", "delay", "away")

    def __init__(self, server: PrivateServer) -> None:
        self._server = server
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._server.start()
        self._stack.callback(self._server.remove)
        self._proxy = self._stack.enter_context(Proxy(self._server.url))
        self.url = self._proxy.url
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    async def strike(self, what: str, chance: random.Random) -> None:
        match what:
            case "restart":
                await asyncio.to_thread(self._server.stop)
                await asyncio.sleep(chance.uniform(0.0, GONE_SECONDS))
                await asyncio.to_thread(self._server.start)
            case "crash":
                await asyncio.to_thread(self._server.kill)
                await asyncio.to_thread(self._server.start)
            case "drop":
                self._proxy.drop()
            case "swallow":
                self._proxy.swallow()
            case "half-close":
                self._proxy.half_close()
            case "delay":
                self._proxy.delay = chance.uniform(0.0, MAX_DELAY)
                await asyncio.sleep(GONE_SECONDS)
                self._proxy.delay = 0.0
            case "away":
                self._proxy.leave()
                await asyncio.sleep(chance.uniform(0.0, GONE_SECONDS))
                self._proxy.come_back()


def ground(name: str, folder: Path) -> Ground:
    match name:
        case "sqlite":
            return Ground(folder)
        case "postgres":
            return ServerGround(PostgresServer())
        case _:
            # A crash of the server must lose nothing: so every write is on the disk.
            return ServerGround(RedisServer(name, durable=True))
