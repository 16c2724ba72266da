"""A proxy that guards a program with its own HTTP client, such as a browser.

It speaks SOCKS 5 on loopback. The program resolves no names and connects to nothing else, so
whatever a redirect or a script leads it to comes through here: only hosts that were named are
reached, and of these only addresses that the guard lets pass.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import httpcore2

from penstock.errors import AddressRefused
from penstock.outbound.guard import GuardedNetwork, Resolver
from penstock.outbound.web_address import Allow, WebAddress, check

log = logging.getLogger("penstock.proxy")

HANDSHAKE_SECONDS = 10.0
PART_BYTES = 65536
MAX_BYTES = 32 * 1024 * 1024
"""Maximum bytes of one connection towards the program, so that an endless page ends."""

VERSION, CONNECT = 5, 1
IPV4, NAME, IPV6 = 1, 3, 4
GRANTED, REFUSED, UNREACHABLE, UNKNOWN = 0, 2, 4, 7
_NETWORK_ERRORS = (httpcore2.NetworkError, httpcore2.TimeoutException, OSError)


class GuardedProxy:
    """Lets a program reach `hosts`, if `ctx.fetch` might reach them too."""

    def __init__(self, hosts: Collection[str], allow: Allow) -> None:
        self._hosts = hosts
        self._allow = allow
        self._refusals: dict[str, AddressRefused] = {}
        self._network: GuardedNetwork
        self._connections: set[asyncio.Task[None]] = set()

    def refusal(self, host: str) -> AddressRefused | None:
        """Why `host`, although listed, was rejected."""
        return self._refusals.get(host)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve inside the block; yields the proxy's address."""
        resolver = Resolver()
        self._network = GuardedNetwork(self._allow, resolver)
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            resolver.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer), name="penstock-proxy")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                asked = await _asked(reader, writer)
            if asked is None:
                await _answer(writer, UNKNOWN)
                return
            stream = await self._connected(writer, *asked)
            if stream is not None:
                try:
                    await _relay(reader, writer, stream)
                finally:
                    await stream.aclose()
        except (asyncio.IncompleteReadError, TimeoutError, *_NETWORK_ERRORS) as error:
            log.debug("a connection ended: %r", error)  # the program sees it end, and tells
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connected(
        self, writer: asyncio.StreamWriter, host: str, port: int
    ) -> httpcore2.AsyncNetworkStream | None:
        if host not in self._hosts:
            await _answer(writer, REFUSED)
            return None
        try:
            check(WebAddress("", host, port), self._allow)
            stream = await self._network.connect_tcp(host, port)
        except AddressRefused as error:
            self._refusals[host] = error
            await _answer(writer, REFUSED)
            return None
        except _NETWORK_ERRORS:
            await _answer(writer, UNREACHABLE)
            return None
        self._refusals.pop(host, None)
        await _answer(writer, GRANTED)
        return stream


async def _asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, int] | None:
    """Read the host and port that a connection is for; None if the request is unsupported."""
    version, methods = await reader.readexactly(2)
    if version != VERSION:
        return None
    await reader.readexactly(methods)
    writer.write(bytes([VERSION, 0]))  # no name and password: it is on loopback
    _, command, _, kind = await reader.readexactly(4)
    if kind in (IPV4, IPV6):
        host = str(ip_address(await reader.readexactly(4 if kind == IPV4 else 16)))
    elif kind == NAME:
        (length,) = await reader.readexactly(1)
        name = await reader.readexactly(length)
        host = name.decode("ascii", "replace").lower().removesuffix(".")
    else:
        return None
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    return (host, port) if command == CONNECT else None


async def _answer(writer: asyncio.StreamWriter, code: int) -> None:
    writer.write(bytes([VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]))
    await writer.drain()


async def _relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: httpcore2.AsyncNetworkStream
) -> None:
    """Copy data both ways, until either side closes."""

    async def write(part: bytes) -> None:
        writer.write(part)
        await writer.drain()

    up = asyncio.create_task(_pump(lambda: reader.read(PART_BYTES), stream.write, None))
    down = asyncio.create_task(_pump(lambda: stream.read(PART_BYTES), write, MAX_BYTES))
    try:
        done, _ = await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
    finally:
        up.cancel()
        down.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _pump(
    read: Callable[[], Awaitable[bytes]],
    write: Callable[[bytes], Awaitable[None]],
    most: int | None,
) -> None:
    size = 0
    while part := await read():
        size += len(part)
        if most is not None and size > most:
            log.warning("a page of over %d bytes was cut off", most)
            return
        await write(part)
