"""MCP: the tools for agents, at one address. Callers, their rates and the limits of bodies are
those of every other route."""

from __future__ import annotations

from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.model.access import Caller
from penstock.server.bodies import whole
from penstock.server.callers import Known
from penstock.server.problems import Problem

if TYPE_CHECKING:
    from penstock.mcp.http import Endpoint

# Not described with the others: the protocol describes itself.
routes = APIRouter(include_in_schema=False)


def install(api: FastAPI) -> None:
    """Have the tools answered, if what they need is installed."""
    try:
        from penstock.mcp.http import Endpoint
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        api.state.mcp = None
        return
    from penstock.mcp.desk import Service
    from penstock.mcp.errors import Refused
    from penstock.mcp.server import PenstockMCP
    from penstock.mcp.stopping import Stopping

    state, stopping = api.state, Stopping()
    state.draining.also(stopping.begin)

    async def admit() -> None:
        try:
            await state.depth.check()
        except Problem as problem:
            raise Refused(problem.code, problem.detail) from None

    service = Service(state.penstock, _caller_of, stopping, admit, state.metrics.long_poll)
    state.mcp = Endpoint(PenstockMCP(service), state.config.json_bytes)


@asynccontextmanager
async def running(api: FastAPI) -> AsyncIterator[None]:
    """Tools are answered for as long as the block lasts."""
    endpoint: Endpoint | None = api.state.mcp
    if endpoint is None:
        yield
    else:
        async with endpoint.running():
            yield


def _caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


# Only POST. GET would open a stream on which nothing is ever told, and DELETE end a session.
@routes.post("/mcp")
async def exchange(request: Request, caller: Known) -> Response:
    """One message of the protocol, and what is answered to it."""
    endpoint: Endpoint | None = request.app.state.mcp
    if endpoint is None:
        raise Problem(501, "not-installed", "MCP needs: pip install 'penstock[mcp]'")
    request.state.caller = caller
    return _Exchange(endpoint, await whole(request))


class _Exchange(Response):
    """Answers by itself, once the message is here, within the limits of size and time."""

    def __init__(self, endpoint: Endpoint, body: bytes) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._message: MutableMapping[str, Any] | None = {"type": "http.request", "body": body}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def again() -> MutableMapping[str, Any]:
            message, self._message = self._message, None
            return await receive() if message is None else message

        await self._endpoint.answer(scope, again, send)
