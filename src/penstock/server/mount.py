"""The API and the dashboard below a path of somebody else's application."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from fastapi import FastAPI, Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from penstock.model.access import Caller
from penstock.model.server import ServerConfig
from penstock.server.api import build, working
from penstock.server.callers import OTHER_ORIGIN, Callers
from penstock.server.draining import Draining
from penstock.server.guard import App, Receive, Scope, Send
from penstock.server.problems import Problem, busy

if TYPE_CHECKING:
    from penstock.app import Penstock

log = logging.getLogger("penstock.server")

CallerOf = Callable[[Request], Caller | Awaitable[Caller | None] | None]
"""Tells the caller of a request from what the application has found out about its user; None if
that is nobody."""

ROOT = "root"
"""Key in a request's state: the path below which everything is mounted."""
SITE = "site"
"""Key in a request's state: the scope of the request as the application has it."""
VOUCHED = "vouched"
"""Key in a request's state: whether the application has told the caller."""
DESCRIPTION = "/openapi.json"
NO_CALLER = (
    "the caller= of mounted() returned a %s: return None for nobody, or a Caller of "
    "penstock.types: Caller(tenant='default', scopes=frozenset({KeyScope.READ}), key='user:7')"
)
CODES = {401: "unauthorized", 403: "forbidden"}


class Mounted:
    """An ASGI application for `site.mount("/queue", ...)`.

    Its requests are answered as if it were alone; links, redirects and cookies are then moved below
    the path where it is.
    """

    def __init__(
        self,
        app: Penstock,
        caller: CallerOf | None = None,
        sign_in: str | None = None,
        config: ServerConfig | None = None,
    ) -> None:
        self._app = app.use("answers", "keys")
        self._caller = caller
        self._sign_in = sign_in
        self._config = config
        self._api: FastAPI | None = None
        app.beside.append(self._running)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        config = replace(
            self._config or self._app.config.server, require_key=True, allow_anonymous=False
        )
        draining = Draining()
        api = build(self._app, config, draining, any_host=True)
        callers = SiteCallers(api.state.callers, self._caller)
        api.state.callers = callers
        api.router.add_route(DESCRIPTION, _describe, include_in_schema=False)
        api.router.routes.insert(0, api.router.routes.pop())  # before the one that it replaces
        async with working(api):
            self._api = api
            try:
                yield
            finally:
                self._api = None
                draining.begin()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})  # there are none
            return
        root, path = place(scope)
        inner = {
            **scope,
            "path": unquote(path),
            "raw_path": path.encode("latin-1"),
            "root_path": "",
            "state": {ROOT: root, SITE: scope},
        }
        for name in ("app_root_path", "endpoint", "route", "router", "path_params", "user", "auth"):
            inner.pop(name, None)
        api: App = _closed if self._api is None else self._api
        await api(inner, receive, self._moving(root, send))

    def _moving(self, root: str, send: Send) -> Send:
        """Send answers with their addresses below the root."""

        async def moved(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (location := headers.get("location", "")).startswith("/"):
                    headers["location"] = self._address(root, location)
                message["headers"] = [
                    (name, _in_folder(root, value) if name == b"set-cookie" else value)
                    for name, value in message["headers"]
                ]
            await send(message)

        return moved

    def _address(self, root: str, location: str) -> str:
        if self._sign_in is None or not location.startswith("/sign-in?next="):
            return root + location
        wanted = unquote(location.partition("=")[2])
        return f"{self._sign_in}?{urlencode({'next': root + wanted})}"


def mounted(
    app: Penstock,
    *,
    caller: CallerOf | None = None,
    sign_in: str | None = None,
    config: ServerConfig | None = None,
) -> Mounted:
    """The API and the dashboard of an app, to be mounted below a path of an ASGI application:
    `site.mount("/queue", mounted(app, caller=who))`. Call it before the app is opened; it is served
    while the app's `lifespan` lasts.

    `caller` tells, or awaits, the `Caller` of a request: the tenant whose jobs it sees and its
    scopes. It is given the application's own request, with its user and session. Without it, or
    where it tells None, an API key is required. `sign_in` is the application's page for that, and
    gets the address that was wanted as `next`; without it, the dashboard asks for a key. `config`
    is the `server` section of the settings, unless given."""
    return Mounted(app, caller, sign_in, config)


class SiteCallers(Callers):
    """Callers as the application knows them, and those with keys."""

    def __init__(self, others: Callers, caller: CallerOf | None) -> None:
        vars(self).update(vars(others))
        self._caller = caller

    async def caller(self, request: Request) -> Caller:
        """The caller whom the application tells, else the owner of a key. A page of another origin
        makes the browser send its cookies, so it needs a key."""
        if self._caller is not None and not getattr(request.state, OTHER_ORIGIN, False):
            try:
                told = self._caller(Request(request.scope["state"][SITE]))
                found: Any = await told if inspect.isawaitable(told) else told
            except HTTPException as error:
                code = CODES.get(error.status_code, "bad-request")
                raise Problem(
                    error.status_code, code, str(error.detail), headers=error.headers
                ) from None
            if found is not None:
                if not isinstance(found, Caller):
                    log.error(NO_CALLER, type(found).__name__)
                    raise Problem(500, "internal", "no caller is told; see the server log")
                request.scope["state"][VOUCHED] = True
                return found
        return await super().caller(request)


def place(scope: Scope) -> tuple[str, str]:
    """Where a request's application is mounted, and the path below that, escaped."""
    path = scope["path"]
    raw = scope.get("raw_path")
    escaped: str = quote(path) if raw is None else raw.decode("latin-1")
    root = scope.get("root_path", "").rstrip("/")
    outer = scope.get("app_root_path", "")  # taken off by a proxy already, or part of the path
    for prefix in (root, quote(root), root.removeprefix(outer), quote(root.removeprefix(outer))):
        if escaped == prefix or escaped.startswith(f"{prefix}/"):
            return quote(root), escaped[len(prefix) :] or "/"
    return quote(root), escaped


async def _describe(request: Request) -> Response:
    schema = request.app.openapi()
    return JSONResponse({**schema, "servers": [{"url": request.scope["state"][ROOT] or "/"}]})


async def _closed(scope: Scope, receive: Receive, send: Send) -> None:
    problem = busy(
        "not-running",
        "the application that this is mounted in has not started the queue: it has to have "
        "lifespan=app.lifespan(), or enter that in its own lifespan",
    )
    await problem.response()(scope, receive, send)


def _in_folder(root: str, cookie: bytes) -> bytes:
    """A cookie for everything below the root, and for nothing beside."""
    parts = cookie.decode("latin-1").split("; ")
    return "; ".join(f"Path={root or '/'}" if one == "Path=/" else one for one in parts).encode(
        "latin-1"
    )
