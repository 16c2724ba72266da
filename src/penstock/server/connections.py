"""Limits connections, and the size and time of request headers.

The HTTP library waits indefinitely for a head, and buffers all of it. So a client that opens
connections and sends nothing, or never finishes, could use up all file descriptors and memory.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.model.server import Anonymous, ServerConfig
from penstock.server.callers import OWN_USER
from penstock.server.peers import is_own_user
from penstock.server.problems import MEDIA_TYPE, Problem, busy

log = logging.getLogger("penstock.server")

SPARE_FILES = 256
"""File descriptors for databases, originals, parsers."""
SEPARATORS = b": \r\n"
"""Bytes of a header besides its name and value."""
MAX_HEADERS = 200
"""Maximum headers of a request, including trailers."""
REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large", 503: b"Too Many"}


class ConnectionGate:
    """All connections of a server, and which of them are idle."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.most = min(config.max_connections, _files(config.max_connections) - SPARE_FILES)
        self.idle: dict[HttpConnection, None] = {}  # in the order in which they came to be so

    def connection(self, *arguments: Any, **options: Any) -> HttpConnection:
        """Create a connection; called by the HTTP library for each that is accepted."""
        return HttpConnection(self, *arguments, **options)


def _files(connections: int) -> int:
    """Raise the limit of open files as far as needed and possible, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < wanted:
        log.warning("%d files may be open, so connections are fewer than %d", soft, connections)
    return soft


class HttpConnection(HttpToolsProtocol):
    """A connection that is closed if the head of a request is late or too large."""

    def __init__(self, lobby: ConnectionGate, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lobby = lobby
        self._patience: asyncio.TimerHandle | None = None
        self._unparsed = 0
        """Bytes since the last complete element, in a head or after a body."""
        self._head = 0
        self._headers = 0
        self._in_head = False
        self._too_large = False
        self._own_user = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        lobby = self._lobby
        if lobby.config.anonymous is Anonymous.OWN_USER:
            self._own_user = is_own_user(transport)
        lobby.idle[self] = None
        self._hurry()
        if len(self.connections) > lobby.most:
            # The one that has been idle for longest makes room; it may be this one.
            oldest = next(iter(lobby.idle))
            oldest.refuse(busy("too-many-connections", f"{lobby.most} connections are open"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        self._lobby.idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unparsed > self._lobby.config.head_bytes:
            self._too_large = True
            self.send_400_response("")
        elif self in self._lobby.idle and self._patience is None:
            self._hurry()

    def on_message_begin(self) -> None:
        self._head = self._headers = 0
        self._in_head = True
        super().on_message_begin()
        self.scope["state"][OWN_USER] = self._own_user

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._count(name, SEPARATORS, value)
        if not self._in_head:
            # A trailer, which comes after the body: nothing may be decided by it, and most of the
            # request is (RFC 9110, 6.5.1).
            return
        # Blanks around a value are no part of it (RFC 9110, 5.5); the parser leaves those after.
        super().on_header(name, value.strip(b" \t"))

    def _count(self, *parts: bytes) -> None:
        self._head += sum(map(len, parts))
        if self._head > self._lobby.config.head_bytes or self._headers > MAX_HEADERS:
            self._too_large = True
            raise ValueError("too large")  # the parser stops, and the answer is that of `refuse`

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._unparsed = 0
        self._relax()
        self._lobby.idle.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        another = bool(self.pipeline)
        super().on_response_complete()
        if not another and not self.transport.is_closing():
            self._lobby.idle[self] = None

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            most = self._lobby.config.head_bytes
            said = f"over {most:,} bytes before the body, or over {MAX_HEADERS} headers"
            self.refuse(Problem(431, "too-large", said))
        else:
            self.refuse(Problem(400, "bad-request", "not an HTTP/1.1 request"))

    def refuse(self, problem: Problem) -> None:
        """Send the problem, unless a response is in progress, and close the connection."""
        self.connections.discard(self)  # at once: what is on its way out is no more to be counted
        self._lobby.idle.pop(self, None)
        answering: Any = self.cycle  # None before the first request, whatever its type says
        if answering is None or answering.response_complete:
            body = problem.body()
            head = {
                "content-type": MEDIA_TYPE,
                "content-length": str(len(body)),
                "connection": "close",
                **problem.headers,
            }
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            status = b"HTTP/1.1 %d %s\r\n" % (problem.status, REASONS[problem.status])
            self.transport.write(status + lines.encode() + b"\r\n" + body)
        self.transport.close()

    def _hurry(self) -> None:
        self._patience = self.loop.call_later(self._lobby.config.head_seconds, self._give_up)

    def _relax(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if self in self._lobby.idle:
            self.transport.close()
