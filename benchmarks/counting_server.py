"""A service on loopback that counts what reaches it, and can be away."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from types import TracebackType
from typing import Self


class CountingServer:
    """`GET /name?latency=0.05`: notes when it came and how many were open at once. Of a name that
    has a limit, what is too many at a time is answered 429, and counted."""

    def __init__(self, port: int = 0) -> None:
        self.arrivals: dict[str, list[float]] = defaultdict(list)
        self.most_open: dict[str, int] = defaultdict(int)
        self.limits: dict[str, int] = {}
        self.refused: dict[str, int] = defaultdict(int)
        self._open: dict[str, int] = defaultdict(int)
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self, port: int) -> None:
        self._loop.run_until_complete(self._serve(port))
        self._loop.close()

    async def _serve(self, port: int) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._answer, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._over.wait()
        server.close()
        server.close_clients() if hasattr(server, "close_clients") else None
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path, _, latency = head.split(b" ")[1].decode().partition("?latency=")
                if self._open[path] >= self.limits.get(path, 1_000_000):
                    self.refused[path] += 1
                    writer.write(b"HTTP/1.1 429 No\r\nContent-Length: 2\r\n\r\nno")
                    await writer.drain()
                    continue
                self.arrivals[path].append(time.monotonic())
                self._open[path] += 1
                self.most_open[path] = max(self.most_open[path], self._open[path])
                if latency:
                    await asyncio.sleep(float(latency))
                self._open[path] -= 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def most_in_window(times: list[float], seconds: float) -> int:
    """The most arrivals in any window of that length."""
    most, first = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most
