"""A TCP proxy between a client and a server, which can lose things on their way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Passes everything on, until told otherwise."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.port = 0
        self.lose: bytes | None = None
        """The answer to the next request that contains this is lost, with its connection."""
        self.lost = 0
        self._passing = asyncio.Event()
        self._passing.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def silence(self) -> None:
        """Pass nothing on, in neither direction, and close no connection."""
        self._passing.clear()

    def resume(self) -> None:
        self._passing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there = await asyncio.open_connection("127.0.0.1", self._server_port)
        doomed = asyncio.Event()
        pumps = [
            asyncio.create_task(self._requests(reader, there[1], doomed)),
            asyncio.create_task(self._answers(there[0], writer, doomed)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            writer.close()
            there[1].close()
            self._tasks.discard(task)

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 20):
            if self.lose is not None and self.lose in data:
                self.lose = None
                doomed.set()
            await self._pass(data, writer)

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 20):
            if doomed.is_set():
                self.lost += 1
                return
            await self._pass(data, writer)

    async def _pass(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        writer.write(data)
        await writer.drain()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxied(port: int) -> AsyncIterator[Proxy]:
    """A proxy in front of the server at `port`, on a port of its own."""
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
