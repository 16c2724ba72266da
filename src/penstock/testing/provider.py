"""The provider of a test: answers what handlers ask over HTTP, and fails when it is told to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from penstock import runtime
from penstock.engine import prober
from penstock.errors import ValidationError


@dataclass(slots=True)
class _Planned:
    """Answers that were named, and how many of them are left."""

    host: str | None
    make: Callable[[], httpx2.Response]
    left: int


class SimulatedProvider:
    """All servers that handlers reach with `ctx.http`, in this process. Requests get the answers
    that were named, in that order; after those, what `responds` says, else 200 and `{}`."""

    def __init__(self, monotonic: Callable[[], float] = runtime.monotonic) -> None:
        """`monotonic` is the clock that outages go by."""
        self._monotonic = monotonic
        self.requests: list[httpx2.Request] = []
        """What it was asked, also while it was down, in order."""
        self._planned: list[_Planned] = []
        self._down: list[tuple[str | None, float]] = []
        """Hosts (None: all), and until when."""
        self._respond: Callable[[httpx2.Request], httpx2.Response] | None = None
        self.answered: Callable[[], Awaitable[None]] | None = None
        """Awaited when a request was answered, and the answer is on its way."""

    def answers(
        self,
        status: int = 200,
        *,
        json: Any = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        times: int = 1,
        host: str | None = None,
    ) -> None:
        """Answer the next `times` requests, to `host` if one is given, with this."""
        if times < 1:
            raise ValidationError(f"times is 1 or more, not {times!r}")
        given = dict(headers or {})
        if retry_after is not None:
            given["Retry-After"] = f"{retry_after:g}"

        def make() -> httpx2.Response:
            if text is not None:
                return httpx2.Response(status, text=text, headers=given)
            return httpx2.Response(status, json={} if json is None else json, headers=given)

        make()  # raises now what is wrong with it
        self._planned.append(_Planned(host, make, times))

    def down(self, for_: float, *, host: str | None = None) -> None:
        """Refuse connections, to `host` if one is given, for so many seconds."""
        self._down.append((host, self._monotonic() + for_))

    def responds(self, respond: Callable[[httpx2.Request], httpx2.Response]) -> None:
        """Answer by this function whatever has no answer of its own."""
        self._respond = respond

    @property
    def left(self) -> int:
        """Answers that were named and that nobody has asked for yet."""
        return sum(one.left for one in self._planned)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have the requests of all jobs of this process answered here, and no probe leave it."""
        transport, reachable = httpx2.MockTransport(self._answer), prober.reachable
        prober.reachable = self._reachable
        try:
            with runtime.replaced(http_transport=lambda: transport):
                yield
        finally:
            prober.reachable = reachable

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        host = request.url.host
        if self._is_down(host):
            raise httpx2.ConnectError(f"{host} is down", request=request)
        response = self._response(request, host)
        if self.answered is not None:
            await self.answered()
        return response

    def _response(self, request: httpx2.Request, host: str) -> httpx2.Response:
        for planned in self._planned:
            if planned.left and planned.host in (None, host):
                planned.left -= 1
                return planned.make()
        if self._respond is not None:
            return self._respond(request)
        return httpx2.Response(200, json={})

    def _is_down(self, host: str) -> bool:
        now = self._monotonic()
        return any(one in (None, host) and now < until for one, until in self._down)

    async def _reachable(self, where: str) -> bool:
        parts = urlsplit(where if "//" in where else f"tcp://{where}")
        return not self._is_down(parts.hostname or "")
