"""Middleware before every route: checks the host, refuses requests while the server is stopping,
and counts responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response

from penstock.model.server import ServerConfig, is_loopback
from penstock.server.callers import OTHER_ORIGIN
from penstock.server.cors import Origins, by_other_page, is_preflight, preflight
from penstock.server.draining import Draining
from penstock.server.metrics import Metrics
from penstock.server.problems import PageOf, Problem, busy, for_people, unforeseen
from penstock.telemetry import tracing

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NUL = b"%00"
MAX_PARAMETERS = 100
"""More than any path has: each may be an error of its own."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
LINGER_SECONDS = 1.0
LINGER_BYTES = 16_000_000
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PROBES = ("/healthz", "/readyz")
"""Paths served to anybody, under any host name: probes use addresses."""
METRICS = "/metrics"
ALWAYS = (*PROBES, METRICS)
"""Paths served even while the server is stopping."""


class _Name(Convertor[str]):
    """One part of a path, unescaped only here: an id may contain a slash."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _Name())


class Guard:
    def __init__(
        self,
        app: App,
        config: ServerConfig,
        draining: Draining,
        metrics: Metrics,
        page_of: PageOf,
        any_host: bool = False,
    ) -> None:
        self._app = app
        self._page_of = page_of
        self._draining = draining
        self._metrics = metrics
        self._origins = Origins(config.origins)
        self._hosts: frozenset[str] | None = frozenset((*LOOPBACK, config.host, *config.hosts))
        if any_host or (not is_loopback(config.host) and not config.hosts):
            # It may be reached under any name. Nobody gets in without a key there, and a key is
            # not sent by a browser that was led astray.
            self._hosts = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        scope["path"] = scope["raw_path"].decode("latin-1")  # still escaped, see _Name
        scope.setdefault("state", {})
        asked = Headers(scope=scope)
        origin = self._origins.allowed(scope["path"], asked)

        received = False  # all of the body
        started = False  # the answer

        async def take() -> MutableMapping[str, Any]:
            nonlocal received
            message = await receive()
            received = received or not message.get("more_body", False)
            return message

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                status = message["status"]
                if status >= 400 and not received and b"expect" not in dict(scope["headers"]):
                    await _linger(take)
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
                headers.update(scope["state"].get("headers", {}))
                self._origins.mark(headers, origin)
                if self._draining.begun or (status >= 400 and not received):
                    headers["Connection"] = "close"
                route = _route(scope)
                span.rename(f"{method} {route}")
                span.set({"http.route": route, "http.response.status_code": status})
                if status >= 500:
                    span.fail(str(status))
                seconds = time.monotonic() - begun
                self._metrics.answered(scope["method"], route, status, seconds)
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else "HTTP"
        with _span(method, scope) as span:
            try:
                self._check(scope, asked, origin)
                app = preflight(asked) if origin and is_preflight(method, asked) else self._app
                await app(scope, take, answer)
            except Problem as problem:
                await self._told(scope, problem)(scope, take, answer)
            except Exception as error:
                told = unforeseen(scope["method"], _route(scope), error)
                if not started:  # else the connection is cut, which tells as much
                    await self._told(scope, told)(scope, take, answer)

    def _told(self, scope: Scope, problem: Problem) -> Response:
        """Respond with a page if a person in a browser asks."""
        request = Request(scope)
        return self._page_of(request, problem) if for_people(request) else problem.response()

    def _check(self, scope: Scope, headers: Headers, allowed: str | None) -> None:
        path = scope["path"]
        if path in PROBES:
            return
        if self._draining.begun and path not in ALWAYS:
            raise busy("stopping", "this server is stopping; retry elsewhere", 1.0)
        if NUL in scope["raw_path"] or NUL in scope["query_string"]:
            # PostgreSQL has no text with it, and would be said not to be there.
            raise Problem(422, "invalid", "no name and no filter holds a NUL")
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            raise Problem(422, "invalid", f"over {MAX_PARAMETERS} parameters")
        if len(headers.getlist("host")) > 1:
            raise Problem(400, "bad-request", "there are several Host headers")
        host, port = _place(f"//{headers.get('host', '')}")
        # Prometheus comes by address, with a key; a browser that was led astray has none.
        by_key = path == METRICS and "authorization" in headers
        if self._hosts is not None and host not in self._hosts and not by_key:
            raise Problem(
                421,
                "wrong-host",
                f"this server is not {host or 'without a name'}; name it under server.hosts",
            )
        origin = headers.get("origin")
        if origin is None:
            scope["state"][OTHER_ORIGIN] = by_other_page(headers)
            return
        if _place(origin) == (host, port):
            return
        if allowed is None:
            raise Problem(
                403,
                "wrong-origin",
                "a page of another site may not call this; server.origins names those that may "
                "call the API",
            )
        scope["state"][OTHER_ORIGIN] = True


async def _linger(take: Receive) -> None:
    """Read a little more of a rejected body: closing a connection with unread bytes would lose the
    response to a caller that is still sending."""
    size = 0
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while size < LINGER_BYTES:
                message = await take()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _span(method: str, scope: Scope) -> AbstractContextManager[tracing.Span]:
    """Trace a request. Only the route is recorded; the rest of the URL names the subject. Not for
    probes."""
    if scope["path"] in ALWAYS:
        return nullcontext(tracing.SILENT)
    header = Headers(scope=scope).get(tracing.HEADER)
    caller = None if header is None else {tracing.HEADER: header}
    return tracing.span(method, "server", {"http.request.method": method}, caller=caller)


def _route(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path_format", "none"))


def _place(url: str) -> tuple[str, int | None]:
    """Return host and port; None for default ports."""
    try:
        parts = urlsplit(url)
        port = None if parts.port in (80, 443) else parts.port
    except ValueError:
        return "", None
    return parts.hostname or "", port
