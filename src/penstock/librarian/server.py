"""The librarian's service: searches on behalf of callers, until their deadline or disconnect."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from penstock.errors import ConfigError, PenstockError, ValidationError
from penstock.librarian.credentials import TokenCheck, server_credentials, token_of
from penstock.librarian.limits import MESSAGE_BYTES
from penstock.librarian.messages import errand_of, round_message
from penstock.librarian.status import HEARD, KEY, ServiceFull, ending_of
from penstock.librarian.v1 import librarian_pb2 as pb
from penstock.model.answer import Round
from penstock.model.librarian import LibrarianConfig
from penstock.model.server import is_loopback
from penstock.ports.librarian import Errand, Librarian
from penstock.ports.provider import ProviderContext
from penstock.telemetry import tracing

log = logging.getLogger("penstock.librarian")

SERVICE = pb.DESCRIPTOR.services_by_name["Librarian"].full_name
NAME = f"{SERVICE}/Search"
MAX_SECONDS = 600.0
"""Maximum duration of a search, whatever the caller's deadline."""
LAST_WORD_SECONDS, LAST_WORD_SHARE = 0.25, 0.1
"""How long before its deadline a search ends, so that its last round still reaches the caller."""
HEALTH_SECONDS = 2.0
"""Interval between health checks."""
MORE_CALLS = 32
"""Calls in addition to searches: health checks, and callers that are told that the service is
full."""

AskingFor = Callable[[str, float], ProviderContext]
"""Context for a tenant, until a time on the queue's clock."""


class LibrarianServing:
    """The service while it listens."""

    def __init__(self, address: str, server: grpc.aio.Server) -> None:
        self.address = address
        self._server = server

    async def hasten(self) -> None:
        """Stop waiting for searches."""
        await self._server.stop(0)


@asynccontextmanager
async def serving(
    librarian: Librarian,
    asking: AskingFor,
    now: Callable[[], float],
    ready: Callable[[], Awaitable[None]],
    config: LibrarianConfig,
) -> AsyncIterator[LibrarianServing]:
    """Serve inside the block. After it, no calls are accepted, and those in progress may finish for
    a while. `ready` raises if the service cannot search. Raises ConfigError if it cannot listen."""
    server = _server(config)
    searches = Searches(librarian, asking, now, config.max_searches)
    handler = grpc.unary_stream_rpc_method_handler(
        searches.search,
        request_deserializer=_errand,
        response_serializer=pb.Round.SerializeToString,
    )
    methods = grpc.method_handlers_generic_handler(SERVICE, {"Search": handler})
    server.add_generic_rpc_handlers((methods,))
    reports = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(reports, server)
    address = _listen(server, config)
    await _report(reports, health_pb2.HealthCheckResponse.NOT_SERVING)
    await server.start()
    watching = asyncio.create_task(_watch(reports, ready), name="penstock-librarian-health")
    try:
        yield LibrarianServing(address, server)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await reports.enter_graceful_shutdown()
        await server.stop(config.shutdown_seconds)


class Searches:
    """The calls in progress."""

    def __init__(
        self, librarian: Librarian, asking: AskingFor, now: Callable[[], float], most: int
    ) -> None:
        self._librarian = librarian
        self._asking = asking
        self._now = now
        self._most = most
        self._running = 0

    async def search(self, message: pb.Errand | None, context: grpc.aio.ServicerContext) -> None:
        """Handle one call. It is cancelled, and the search with it, when the caller disconnects."""
        asking: ProviderContext | None = None
        try:
            if self._running >= self._most:
                raise ServiceFull(f"{self._most} searches are under way already")
            self._running += 1
            try:
                caller = dict(context.invocation_metadata() or ())
                with tracing.span(NAME, "server", {"rpc.system": "grpc"}, caller=caller):
                    errand, left = self._errand(message, context)
                    await context.send_initial_metadata(((HEARD, "1"),))
                    asking = self._asking(errand.tenant, self._now() + left)
                    rounds = self._librarian.search(asking, errand)
                    async with asyncio.timeout(left), aclosing(rounds):
                        async for turn in rounds:
                            await context.write(_message(turn))
            finally:
                self._running -= 1
        except Exception as error:
            report = None if asking is None else asking.lanes.reports.of(error)
            lane = None if report is None else report.lane
            code, details, trouble = ending_of(error, lane, self._now())
            trailing = () if trouble is None else ((KEY, trouble.SerializeToString()),)
            await context.abort(code, details, trailing)

    def _errand(
        self, message: pb.Errand | None, context: grpc.aio.ServicerContext
    ) -> tuple[Errand, float]:
        """Return the errand, and its time limit in seconds."""
        left = context.time_remaining()
        if left is None:
            raise ValidationError("a search needs a deadline")
        if message is None:
            raise ValidationError("the errand cannot be read")
        left = min(left, MAX_SECONDS)
        last_word = min(LAST_WORD_SECONDS, LAST_WORD_SHARE * left)
        return errand_of(message, self._now() + left - last_word), left


def _message(turn: Round) -> pb.Round:
    try:
        return round_message(turn)
    except ValidationError as error:  # which is no fault of the caller
        raise PenstockError(f"a round that cannot be sent: {error}") from error


def _errand(data: bytes) -> pb.Errand | None:
    """Decode an errand; None if invalid. An exception here would be reported as an error of the
    service."""
    try:
        errand: pb.Errand = pb.Errand.FromString(data)
        return errand
    except DecodeError:
        return None


def _server(config: LibrarianConfig) -> grpc.aio.Server:
    token = token_of(config)
    if token is None and not is_loopback(config.host):
        raise ConfigError(
            f"listening on {config.host} needs a token: librarian.token_variable names the "
            "environment variable that holds it"
        )
    alive = round(1000 * config.keepalive_seconds)
    return grpc.aio.server(
        interceptors=[] if token is None else [TokenCheck(token)],
        maximum_concurrent_rpcs=config.max_searches + MORE_CALLS,
        options=[
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
            ("grpc.max_send_message_length", MESSAGE_BYTES),
            ("grpc.max_concurrent_streams", config.max_searches + MORE_CALLS),
            ("grpc.so_reuseport", 0),  # else a second one would share the port, unseen
            ("grpc.keepalive_time_ms", alive),
            ("grpc.keepalive_timeout_ms", alive),
            ("grpc.http2.ping_timeout_ms", alive),  # else it is a minute, whatever the other says
            # Callers ask as often; by default that is taken for an attack.
            ("grpc.http2.min_ping_interval_without_data_ms", alive // 2),
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )


def _listen(server: grpc.aio.Server, config: LibrarianConfig) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    wanted, credentials = f"{host}:{config.port}", server_credentials(config)
    try:
        if credentials is None:
            port = server.add_insecure_port(wanted)
        else:
            port = server.add_secure_port(wanted, credentials)
    except RuntimeError as error:
        raise ConfigError(
            f"cannot listen on {wanted}: {error}; --port or librarian.port name another"
        ) from None
    return f"{host}:{port}"


async def _watch(reports: health.aio.HealthServicer, ready: Callable[[], Awaitable[None]]) -> None:
    """Update the reported health: whether searches are possible."""
    was: int | None = None
    while True:
        status, trouble = health_pb2.HealthCheckResponse.SERVING, ""
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                await ready()
        except (PenstockError, TimeoutError) as error:
            status = health_pb2.HealthCheckResponse.NOT_SERVING
            trouble = str(error) or type(error).__name__
        if status != was:
            await _report(reports, status)
            if trouble:
                log.warning("not ready: %s", trouble)
            else:
                log.info("ready")
        was = status
        await asyncio.sleep(HEALTH_SECONDS)


async def _report(reports: health.aio.HealthServicer, status: int) -> None:
    for name in ("", SERVICE):
        await reports.set(name, status)
