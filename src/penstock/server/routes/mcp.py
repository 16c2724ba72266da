"""MCP at one path; authentication, rate limits and body limits are those of every route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from starlette.datastructures import State
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.mcp.waiting import Stopping
from penstock.model.access import Caller
from penstock.server.bodies import AT_ONCE, whole
from penstock.server.callers import Known
from penstock.server.problems import Problem
from penstock.text.json_text import has_too_many

if TYPE_CHECKING:
    from penstock.mcp.http import Endpoint

# Not described with the others: the protocol describes itself.
routes = APIRouter(include_in_schema=False)

MAX_VALUES = 10_000
"""In one message: the SDK goes through each of them on the event loop, several times."""


class McpMount:
    """Opens MCP on the first request: the SDK takes half a second to import, and 25 MB."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stopping = Stopping()
        self._opening = asyncio.Lock()
        self._endpoint: Endpoint | None = None
        self._open = AsyncExitStack()
        state.draining.also(self._stopping.begin)

    async def endpoint(self) -> Endpoint:
        async with self._opening:
            if self._endpoint is None:
                await asyncio.to_thread(_import)
                endpoint = self._make()
                await self._open.enter_async_context(endpoint.running())
                self._endpoint = endpoint
            return self._endpoint

    def _make(self) -> Endpoint:
        from penstock.mcp.errors import CallRefused
        from penstock.mcp.http import Endpoint
        from penstock.mcp.server import PenstockMCP
        from penstock.mcp.tool_view import McpServices

        state = self._state

        async def admit(tenant: str) -> None:
            try:
                await state.depth.check(tenant)
            except Problem as problem:
                raise CallRefused(problem.code, problem.detail) from None

        waiting = state.metrics.long_poll
        service = McpServices(state.penstock, _caller_of, self._stopping, admit, waiting)
        server = PenstockMCP(service, families=state.config.mcp_tools)
        return Endpoint(server, state.config.json_bytes)

    async def close(self) -> None:
        await self._open.aclose()


def _import() -> None:
    try:
        import_module("penstock.mcp.http")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise Problem(501, "not-installed", "MCP needs: pip install 'penstock[mcp]'") from None


def _caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def install(api: FastAPI) -> None:
    api.state.tools = McpMount(api.state)


@asynccontextmanager
async def running(api: FastAPI) -> AsyncIterator[None]:
    """Serve tools inside the block."""
    try:
        yield
    finally:
        await api.state.tools.close()


# Only POST. GET would open a stream on which nothing is ever told, and DELETE end a session.
@routes.post("/mcp")
async def exchange(request: Request, caller: Known) -> Response:
    """Handle one message of the protocol."""
    body = await whole(request)
    if len(body) > AT_ONCE and await asyncio.to_thread(_has_too_many, body):
        raise Problem(422, "invalid", f"the message has over {MAX_VALUES:,} values")
    return _Exchange(await request.app.state.tools.endpoint(), body)


def _has_too_many(body: bytes) -> bool:
    # What is no UTF-8 is no message either.
    return has_too_many(body.decode("utf-8", "replace"), MAX_VALUES)


class _Exchange(Response):
    """Response that passes a message, already read within the limits of size and time, to the
    endpoint."""

    def __init__(self, endpoint: Endpoint, body: bytes) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._message: MutableMapping[str, Any] | None = {"type": "http.request", "body": body}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def again() -> MutableMapping[str, Any]:
            message, self._message = self._message, None
            return await receive() if message is None else message

        await self._endpoint.answer(scope, again, send)
