"""HTTP/1.1 by hand: light enough for thousands of connections, and able to send what no client
library would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

LIMIT = 16 * 1024 * 1024
"""The longest line that is read, an event's being one."""


@dataclass(slots=True, frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """A request as it goes over the wire; bodies are JSON unless a header says otherwise."""
    fields = {"Host": "localhost"}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= headers or {}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


class NoStream(ConnectionError):
    """Events were asked for, and another answer came."""

    def __init__(self, status: int) -> None:
        super().__init__(f"no stream, but status {status}")
        self.status = status


class Wire:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, url: str) -> Self:
        host, _, port = url.removeprefix("http://").partition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=LIMIT))

    async def ask(
        self,
        method: str,
        path: str,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, `content` as JSON unless it is bytes; its whole answer."""
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        self.writer.write(request(method, path, body, headers))
        return await self.answer()

    async def answer(self) -> Reply:
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            return Reply(status, headers, b"".join([part async for part in self.parts()]))
        size = int(headers.get("content-length", "0"))
        return Reply(status, headers, await self.reader.readexactly(size))

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and header fields of what comes; ConnectionError where nothing does."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise ConnectionError(f"closed after {error.partial!r}") from None
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        pairs = (line.partition(": ") for line in lines)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}

    async def parts(self) -> AsyncIterator[bytes]:
        """The chunks of an answer without a length."""
        while size := int(await self.reader.readline(), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()

    async def events(
        self, path: str, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[str, Any]]:
        """Name and data of the events of a stream; NoStream where it is not one. No event is
        cut into several chunks, by our server."""
        self.writer.write(request("GET", path, headers=headers))
        status, _ = await self.head()
        if status != 200:
            raise NoStream(status)
        async for part in self.parts():
            for one in part.decode().split("\n\n"):
                lines = one.split("\n")
                fields = dict(line.split(": ", 1) for line in lines if line[:1] not in ("", ":"))
                if "data" in fields:
                    yield fields["event"], json.loads(fields["data"])

    def close(self) -> None:
        """Hang up, whatever is under way."""
        self.writer.transport.abort()


async def first(coming: AsyncIterator[tuple[str, Any]]) -> tuple[str, Any]:
    """The next of the events of a stream."""
    return await anext(coming)
