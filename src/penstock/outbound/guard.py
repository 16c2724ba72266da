"""The guarded HTTP client: connects only to addresses that were checked.

A name is resolved once for each connection, all its addresses are vetted, and the connection goes
to one of those. So a name that has another answer a moment later gains nothing. This is below
everything that reads URLs: whatever a redirect or a strange spelling leads to comes through here.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address

import httpcore2
import httpx2

from penstock import runtime
from penstock.errors import FetchError
from penstock.outbound.certificates import trusted
from penstock.outbound.client import KEPT_SECONDS
from penstock.outbound.web_address import Allow, kind_of, not_public

log = logging.getLogger("penstock.fetch")

TRIED = 3
"""Maximum addresses of one host name to try."""
CONNECT_SECONDS = 10.0
RESOLVERS = 8
"""Separate threads, so that a slow name server delays only other fetches."""

UNKNOWN = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
"""Resolver errors for a name that does not exist or has no address. All others are problems of the
resolver, and a retry may succeed."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Resolves a host to its addresses."""


class Resolver:
    """The system's resolver."""

    def __init__(self) -> None:
        self._threads = runtime.thread_pool(RESOLVERS, "penstock-resolve")

    async def __call__(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """The only path from the guarded client to the network."""

    def __init__(
        self,
        allow: Allow,
        resolve: Resolve,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allow = allow
        self._resolve = resolve
        self._network = network or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        problem: Exception = httpcore2.ConnectError("the name has no address")
        for address in (await self._vetted(host, port))[:TRIED]:
            patience = CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
            try:
                return await self._network.connect_tcp(
                    address, port, patience, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def _vetted(self, host: str, port: int) -> list[str]:
        """Resolve and check the addresses of a host; one that is not allowed rejects them all.
        AddressRefused does not reveal that, nor whether the name exists: see `not_public`. The
        reason is logged, without the name, which may be personal data."""
        allowed = (host, port) in self._allow
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            unknown = isinstance(error, UnicodeError) or error.errno in UNKNOWN
            if allowed or not unknown:
                raise httpcore2.ConnectError(f"the name cannot be resolved: {error}") from error
            found = []
        if allowed:
            return found
        kinds = {kind_of(ip_address(address)) for address in found} - {None}
        if kinds or not found:
            why = f"leads to a {kinds.pop()} address" if kinds else "is not known"
            log.info("a fetch was refused: the name of its host %s", why)
            raise not_public(host, port)
        return found

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise FetchError("sockets of this machine are not fetched from", 0)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class GuardedClient:
    """HTTP client over the guarded network. Requests share nothing: no cookies, since the next
    request may be another tenant's; no proxy, which would resolve names itself; no redirect that is
    not checked; and no logging, since URLs may contain personal data."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=network,
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        most_bytes: int | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Start a request; the body is still to be read, at most `most_bytes` of it as
        transferred."""
        request = httpx2.Request(method, url, headers=headers)
        where = request.url
        target = httpcore2.URL(
            scheme=where.raw_scheme, host=where.raw_host, port=where.port, target=where.raw_path
        )
        with _as_httpx():
            answer = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=target,
                    headers=request.headers.raw,
                    extensions={"timeout": httpx2.Timeout(timeout).as_dict()},
                )
            )
        response = httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer, most_bytes),
            extensions=answer.extensions,
            request=request,
        )
        try:
            yield response
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    """A response body that is counted as it arrives: decompressed, it may be empty or endless."""

    def __init__(self, answer: httpcore2.Response, most: int | None) -> None:
        self._answer = answer
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        stream = self._answer.stream
        assert isinstance(stream, AsyncIterable)
        with _as_httpx():
            async for part in stream:
                size += len(part)
                if self._most is not None and size > self._most:
                    raise FetchError(f"the answer is over {self._most:,} bytes", 0)
                yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _as_httpx() -> Iterator[None]:
    """Convert network errors to those of the HTTP library, which the rest of the engine knows."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.TimeoutException(f"{type(error).__name__} {error}".strip()) from error
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise httpx2.TransportError(f"{type(error).__name__} {error}".strip()) from error
