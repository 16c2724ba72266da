"""A TCP proxy that behaves as networks do on a bad day: it drops, delays and half-closes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from tests.support.closing_server import stop_listening
from tests.support.database_servers import free_port
from tests.support.waiting import PATIENCE

CHUNK = 65536


class Proxy:
    """Stands before a server, in a thread of its own, so that no test's event loop slows it."""

    def __init__(self, url: str) -> None:
        self._target = _place_of(url)
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._links: set[_Link] = set()
        self.delay = 0.0
        """Seconds every piece of data takes longer."""
        self.passed = 0
        """Bytes passed on so far, in either direction."""
        self.accepted = 0
        """Connections made through it so far."""
        self.lose: bytes | None = None
        """The answer to the next request that contains this is lost, with its connection."""
        self.lost = 0
        self.passing = asyncio.Event()
        self.passing.set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen(free_port()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """The server's URL, through the proxy."""
        parts = urlsplit(self._url)
        user = parts.netloc.rpartition("@")[0]
        place = f"127.0.0.1:{self._port}"
        return urlunsplit(parts._replace(netloc=f"{user}@{place}" if user else place))

    @property
    def open_links(self) -> int:
        return len(self._links)

    def drop(self) -> None:
        """Reset every connection; new ones are let through."""
        self._each(_Link.reset)

    def swallow(self) -> None:
        """Every connection goes dead without a word; new ones are let through."""
        self._each(_Link.swallow)

    def half_close(self) -> None:
        """The server's answers do not arrive any more; what is sent to it still does."""
        self._each(_Link.half_close)

    def silence(self) -> None:
        """Pass nothing on, in neither direction, and close no connection, until `resume`."""

        async def silence() -> None:
            self.passing.clear()

        self._call(silence())

    def resume(self) -> None:
        async def resume() -> None:
            self.passing.set()

        self._call(resume())

    def leave(self) -> None:
        """Nobody is there: connections are reset, new ones refused."""

        async def leave() -> None:
            await stop_listening(self._server)
            for link in list(self._links):
                link.reset()

        self._call(leave())

    def come_back(self) -> None:
        self._call(self._listen(self._port))

    def turn_to(self, url: str) -> None:
        """Stand before another server from now on; connections to the last are reset."""
        self._target = _place_of(url)
        self.drop()

    def _each(self, what: Callable[[_Link], None]) -> None:
        async def strike() -> None:
            for link in list(self._links):
                what(link)

        self._call(strike())

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=PATIENCE)

    async def _listen(self, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self._port: int = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        await stop_listening(self._server)
        self.passing.set()
        # Whoever was about to be let in becomes a link only now: again, until nobody is left.
        give_up = time.monotonic() + PATIENCE
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for link in list(self._links):
                link.reset()
            await asyncio.wait(others, timeout=0.05)
            assert time.monotonic() < give_up, others

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            there = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, (reader, writer), there)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)


def _place_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One connection of a client to the server."""

    def __init__(self, proxy: Proxy, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        for _, writer in (client, server):
            # `drain` then waits until the system has all of it: no reset takes it away again.
            writer.transport.set_write_buffer_limits(0)
        self._mute: set[asyncio.StreamWriter] = set()
        """Whom nothing is passed on to any more."""
        self._doomed = False
        """The next answer is lost."""

    def reset(self) -> None:
        for _, writer in (self._client, self._server):
            writer.transport.abort()

    def swallow(self) -> None:
        self._mute |= {self._client[1], self._server[1]}

    def half_close(self) -> None:
        self._mute.add(self._client[1])

    async def run(self) -> None:
        try:
            await asyncio.gather(
                self._pass_on(self._client[0], self._server[1], self._request),
                self._pass_on(self._server[0], self._client[1], self._answer),
            )
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side is gone, so the other is told
        finally:
            self.reset()

    def _request(self, data: bytes) -> None:
        if self._proxy.lose is not None and self._proxy.lose in data:
            self._proxy.lose, self._doomed = None, True

    def _answer(self, data: bytes) -> None:
        if self._doomed:
            self._proxy.lost += 1
            raise ConnectionResetError

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        look: Callable[[bytes], None],
    ) -> None:
        while data := await reader.read(CHUNK):
            look(data)
            await self._proxy.passing.wait()
            if self._proxy.delay:
                await asyncio.sleep(self._proxy.delay)
            if writer not in self._mute:
                writer.write(data)
                await writer.drain()
                self._proxy.passed += len(data)
        if writer not in self._mute:
            raise ConnectionResetError
