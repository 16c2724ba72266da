"""An HTTP server on loopback that counts: who came when, and how many were there at once.

It runs in a thread with an event loop of its own, and can be taken down and brought back on
the same port.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from tests.support.closing_server import stop_listening
from tests.support.waiting import PATIENCE, PAUSE

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Answer:
    """How requests to a path are answered."""

    status: int = 200
    delay: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    hang: bool = False
    """Takes the request and never answers."""
    reset: bool = False
    """Closes the connection instead of answering."""
    endless: bool = False
    """Sends its body again and again, until the client has had enough."""
    cut: bool = False
    """Hangs up behind its body, however long that was said to be."""
    parts: Sequence[bytes] | None = None
    """Sent instead of the body, in chunks, the first after `delay` and each `pause` after the one
    before; then it is over, unless it is `cut`, or `stalls`."""
    pause: float = 0.0
    stalls: bool = False
    """Sends nothing more behind its parts, and does not end."""
    until: Callable[[], bool] | None = None
    """It is not sent before this is true; of several parts, the last is not."""
    leaves: bool = False
    """Hangs up behind it, as late as can be: on the next request over the same connection."""


@dataclass(slots=True)
class Hit:
    """One request."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    arrived: float
    """On time.monotonic()."""
    answered: float | None = None
    lost: float | None = None
    """When the client hung up without the whole answer."""
    status: int | None = None


class CountingServer:
    """Answers each path as `answers` says, the longest prefix of it that is there."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {"/": Answer()}
        self.hits: list[Hit] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="counting-server")
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Transport] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def up(self) -> None:
        """Accept connections, always on the same port."""
        self._run(self._listen())

    def down(self) -> None:
        """Refuse connections and drop those that are open."""
        self._run(self._hang_up())

    def at(self, path: str) -> list[Hit]:
        return [hit for hit in list(self.hits) if hit.path == path]

    def arrivals(self, path: str) -> list[float]:
        return [hit.arrived for hit in self.at(path)]

    def spans(self, path: str) -> list[tuple[float, float]]:
        """From when to when each request was there; until now if it still is."""
        now = time.monotonic()
        return [(hit.arrived, hit.answered or hit.lost or now) for hit in self.at(path)]

    def answer(self, path: str) -> Answer:
        known = [prefix for prefix in list(self.answers) if path.startswith(prefix)]
        return self.answers[max(known, key=len)]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await self._loop.create_server(
                lambda: _Connection(self, self._open), "127.0.0.1", self.port, backlog=1024
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        if self._server is not None:
            await stop_listening(self._server)
            for transport in list(self._open):
                transport.abort()
            await self._server.wait_closed()
            self._server = None


class _Connection(asyncio.Protocol):
    def __init__(self, server: CountingServer, connections: set[asyncio.Transport]) -> None:
        self._server = server
        self._connections = connections
        self._transport: asyncio.Transport
        self._buffer = b""
        self._since = 0.0
        self._hit: Hit | None = None
        self._left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.discard(self._transport)
        if self._hit is not None and self._hit.answered is None:
            self._hit.lost = time.monotonic()

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._transport.close()
            return
        if not self._buffer:
            self._since = time.monotonic()
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        request, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (li.partition(":") for li in lines)
        }
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        method, target, _ = request.split(" ")
        parts = urlsplit(target)
        hit = Hit(method, parts.path, parts.query, headers, rest[:length], self._since)
        self._hit = hit
        self._server.hits.append(hit)
        answer = self._server.answer(hit.path)
        self._left = answer.leaves
        if answer.hang:
            return
        asyncio.get_running_loop().call_later(answer.delay, self._answer, hit, answer)

    def _answer(self, hit: Hit, answer: Answer) -> None:
        waits = answer.parts is None and answer.until is not None and not answer.until()
        if waits and not self._transport.is_closing():
            asyncio.get_running_loop().call_later(PAUSE, self._answer, hit, answer)
            return
        hit.status = answer.status
        if answer.parts is not None:
            self._start(answer)
            self._go_through(hit, answer, list(answer.parts))
            return
        hit.answered = time.monotonic()
        if answer.reset:
            self._transport.abort()
            return
        length = {} if answer.endless else {"content-length": str(len(answer.body))}
        headers = {**length, **answer.headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {answer.status} -\r\n{text}\r\n".encode("latin-1")
        self._transport.write(head + (b"" if hit.method == "HEAD" else answer.body))
        if answer.cut:
            self._transport.close()
        if answer.endless:
            self._go_on(answer.body)

    def _start(self, answer: Answer) -> None:
        headers = {"transfer-encoding": "chunked", **answer.headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"HTTP/1.1 {answer.status} -\r\n{text}\r\n".encode("latin-1"))

    def _go_through(self, hit: Hit, answer: Answer, left: list[bytes]) -> None:
        if self._transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        if len(left) == 1 and answer.until is not None and not answer.until():
            loop.call_later(PAUSE, self._go_through, hit, answer, left)
        elif left:
            part = left.pop(0)
            self._transport.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            loop.call_later(answer.pause if left else 0, self._go_through, hit, answer, left)
        elif answer.cut:
            hit.answered = time.monotonic()
            self._transport.close()
        elif not answer.stalls:
            hit.answered = time.monotonic()
            self._transport.write(b"0\r\n\r\n")

    def _go_on(self, body: bytes) -> None:
        if not self._transport.is_closing():
            if self._transport.get_write_buffer_size() == 0:
                self._transport.write(body)
            asyncio.get_running_loop().call_later(0.001, self._go_on, body)


def redirect(to: str, status: int = 302) -> Answer:
    return Answer(status, headers={"location": to})


def as_json(value: Any) -> Answer:
    return Answer(body=json.dumps(value).encode())
