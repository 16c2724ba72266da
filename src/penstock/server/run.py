"""Runs a server process: the API, and workers unless disabled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn

from penstock.errors import ConfigError
from penstock.model.server import Anonymous, ServerConfig
from penstock.server.api import build, working
from penstock.server.connections import ConnectionGate
from penstock.server.draining import Draining

if TYPE_CHECKING:
    from penstock.app import Penstock

BACKLOG = 2048
LATE_SECONDS = 0.2


class _Server(uvicorn.Server):
    """The HTTP library's server, which leaves signals to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServing:
    """The API while it listens."""

    def __init__(self, address: str, server: _Server, done: asyncio.Task[None]) -> None:
        self.address = address
        self._server = server
        self.done = done

    def hasten(self) -> None:
        """Stop waiting for requests."""
        self._server.force_exit = True


@asynccontextmanager
async def listening(
    app: Penstock, config: ServerConfig, draining: Draining, bound: socket.socket
) -> AsyncIterator[HttpServing]:
    """Serve the API of an open app inside the block. Then stop: no new connections, waits and
    streams end, requests finish within the limit."""
    await _check_keys(app, config)
    api = build(app, config, draining)
    server = _Server(
        uvicorn.Config(
            api,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=ConnectionGate(config).connection,  # type: ignore[arg-type]  # it calls it, no more
            loop="none",
            ws="none",
            backlog=BACKLOG,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=round(config.shutdown_seconds) or 1,
        )
    )
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    async with working(api):
        done = asyncio.create_task(server.serve(sockets=[bound]), name="penstock-http")
        try:
            yield HttpServing(f"http://{shown}:{port}", server, done)
        finally:
            draining.begin()
            # Requests that are on their way are still answered, if only with 503: a connection
            # that is closed under a request looks to its caller as if it might have been done.
            await asyncio.sleep(LATE_SECONDS)
            server.should_exit = True
            await asyncio.gather(done, return_exceptions=True)


def bind(config: ServerConfig) -> socket.socket:
    """Bind the address. Raises ConfigError if that fails."""
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A reader that takes nothing any more is dropped by the kernel, with what is buffered.
        unread_ms = round(1500 * config.stall_seconds)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)
        bound.bind(address)
        bound.listen(BACKLOG)  # so that whoever is told the address can connect
    except OSError as error:
        if bound is not None:
            bound.close()
        raise ConfigError(
            f"cannot listen on {config.host}:{config.port}: {error.strerror or error}; "
            "--port or server.port name another"
        ) from None
    bound.setblocking(False)
    return bound


async def _check_keys(app: Penstock, config: ServerConfig) -> None:
    if config.anonymous is not Anonymous.NOBODY:
        return
    keys = await app.keys.list()
    if all(key.revoked_at is not None for key in keys):
        raise ConfigError(
            f"listening on {config.host} requires an API key; create one with "
            "`penstock keys create NAME`"
        )
