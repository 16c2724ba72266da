"""Client of a librarian in another process, over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from penstock.errors import ConfigError, PenstockError, ValidationError
from penstock.lanes.reports import report_of
from penstock.librarian.credentials import HEADER, channel_credentials, token_of
from penstock.librarian.limits import MESSAGE_BYTES
from penstock.librarian.messages import errand_message, round_of
from penstock.librarian.status import HEARD, behind, lost, own
from penstock.librarian.v1 import librarian_pb2 as pb
from penstock.model.answer import Round
from penstock.model.librarian import LibrarianConfig
from penstock.ports.librarian import LANE, MAX_ROUNDS, Errand
from penstock.ports.provider import ProviderContext
from penstock.telemetry import tracing

SEARCH = f"/{pb.DESCRIPTOR.services_by_name['Librarian'].full_name}/Search"
CONNECT_SECONDS = 5.0
RECONNECT_SECONDS = 1.0
"""Maximum delay between two attempts to connect; the lane's breaker decides how often that
happens."""


class RemoteLibrarian:
    """Implements `penstock.ports.librarian.Librarian`. Each search takes a permit in the lane
    `librarian`; the requests of the search itself take permits in the service."""

    lane = LANE

    def __init__(self, config: LibrarianConfig, now: Callable[[], float]) -> None:
        if config.address is None:
            raise ConfigError("librarian: address is not set")
        self._config = config
        self._address = config.address
        self._now = now
        token = token_of(config)
        self._metadata = () if token is None else ((HEADER, f"Bearer {token}"),)
        self._channel: grpc.aio.Channel | None = None

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def check(self, seconds: float) -> None:
        """Raise Unavailable if the service is not ready, AuthenticationError if it rejects the
        token. Nothing is searched: an empty errand is rejected as invalid once the token is
        accepted."""
        search = self._search()
        assert self._channel is not None
        health = health_pb2_grpc.HealthStub(self._channel)
        try:
            told = await health.Check(health_pb2.HealthCheckRequest(), timeout=seconds)
            if told.status != health_pb2.HealthCheckResponse.SERVING:
                raise lost(f"librarian {self._address} says it is not ready", self._address)
            await search(pb.Errand(), timeout=seconds, metadata=self._metadata).read()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                raise own(error, self._address) from error

    async def search(self, asking: ProviderContext, errand: Errand) -> AsyncGenerator[Round, None]:
        """Yield rounds as they arrive. Ends at the deadline with those that have."""
        message = errand_message(errand)
        came: asyncio.Queue[Round | None] = asyncio.Queue()
        # A task of its own: the permit has a time limit, and must not be held across a `yield`.
        asked = asyncio.create_task(self._ask(asking, errand, message, came))
        asked.add_done_callback(lambda _: came.put_nowait(None))
        try:
            while (turn := await came.get()) is not None:
                yield turn
            await asked
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def _ask(
        self,
        asking: ProviderContext,
        errand: Errand,
        message: pb.Errand,
        came: asyncio.Queue[Round | None],
    ) -> None:
        trouble: PenstockError | None = None
        async with asking.lanes.request(LANE):
            left = min(errand.ends_at - self._now(), asking.remaining())
            if left <= 0:
                return
            with tracing.span(SEARCH[1:], "client", {"rpc.system": "grpc"}) as span:
                metadata = list(self._metadata)
                if span.traceparent is not None:  # it is always a service of one's own
                    metadata.append((tracing.HEADER, span.traceparent))
                call = self._search()(message, timeout=left, metadata=metadata)
                trouble = await self._follow(call, errand, came)
        if trouble is not None:  # not under the permit: the librarian itself is in no trouble
            asking.lanes.reports.note(trouble, report_of(trouble))  # the lane behind it knows
            raise trouble

    async def _follow(
        self, call: grpc.aio.UnaryStreamCall, errand: Errand, came: asyncio.Queue[Round | None]
    ) -> PenstockError | None:
        """Read a call to its end; returns the service's problem, if any."""
        heard = False
        try:
            greeting = await call.initial_metadata()
            heard = greeting is not None and HEARD in greeting
            await self._read(call, errand, came)
        except grpc.aio.AioRpcError as error:
            trouble = behind(error, self._now())
            time_was_up = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if trouble is None and not (time_was_up and heard):
                raise own(error, self._address) from error
            return trouble
        finally:
            call.cancel()
        return None

    async def _read(
        self, call: grpc.aio.UnaryStreamCall, errand: Errand, came: asyncio.Queue[Round | None]
    ) -> None:
        last = errand.rounds_done
        async for message in call:
            try:
                turn = round_of(message)
                if not last < turn.number <= MAX_ROUNDS:
                    raise ValidationError(f"round {turn.number} after {last}")
            except ValidationError as error:
                raise lost(f"the answer of the librarian is none: {error}", self._address) from None
            last = turn.number
            came.put_nowait(turn)

    def _search(self) -> grpc.aio.UnaryStreamMultiCallable:
        if self._channel is None:  # made where the event loop runs
            self._channel = self._connect()
        return self._channel.unary_stream(
            SEARCH,
            request_serializer=pb.Errand.SerializeToString,
            response_deserializer=pb.Round.FromString,
        )

    def _connect(self) -> grpc.aio.Channel:
        config = self._config
        alive = round(1000 * config.keepalive_seconds)
        options: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
            ("grpc.keepalive_time_ms", alive),
            ("grpc.keepalive_timeout_ms", alive),
            ("grpc.http2.ping_timeout_ms", alive),  # else it is a minute, whatever the other says
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.min_reconnect_backoff_ms", round(1000 * CONNECT_SECONDS)),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", round(1000 * RECONNECT_SECONDS)),
            ("grpc.enable_retries", 0),  # that is for jobs and breakers to decide
            ("grpc.enable_http_proxy", 0),
        ]
        if config.tls_name is not None:
            options.append(("grpc.ssl_target_name_override", config.tls_name))
        credentials = channel_credentials(config)
        if credentials is None:
            return grpc.aio.insecure_channel(self._address, options=options)
        return grpc.aio.secure_channel(self._address, credentials, options=options)
