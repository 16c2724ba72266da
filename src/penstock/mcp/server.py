"""The MCP server of an app. One object serves clients of both protocol versions, the handshake of
2025-11-25 and the single requests of 2026-07-28, on any transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult

from penstock import __version__
from penstock.mcp.errors import CallRefused, failure_of
from penstock.mcp.resources import RESOURCES
from penstock.mcp.tasks import TasksExtension
from penstock.mcp.tool_view import McpServices
from penstock.mcp.tools import all_tools, all_work, instructions
from penstock.mcp.work import TaskWork
from penstock.text.normalize import storable

NAME = "penstock"
FRESH_MS = 300_000


class PenstockMCP(MCPServer[McpServices]):
    """An MCP server whose tools report all errors as codes and sentences."""

    def __init__(
        self, service: McpServices, tools: Sequence[Tool] = (), work: Sequence[TaskWork] = ()
    ) -> None:
        """`tools` are added to our own, with the work that they start."""

        @asynccontextmanager
        async def lifespan(_: MCPServer[McpServices]) -> AsyncIterator[McpServices]:
            yield service

        operators = service.app.config.server.mcp_operator_tools
        offered = [*all_tools(operators=operators), *tools]
        self._names = {tool.name: tuple(tool.parameters["properties"]) for tool in offered}
        super().__init__(
            NAME,
            title="Penstock",
            description="Durable research tasks, searchable documents, and answers from them.",
            instructions=instructions(operators=operators),
            version=__version__,
            tools=offered,
            extensions=[TasksExtension([*all_work(), *work])],
            lifespan=lifespan,
            subscriptions=False,  # there is nothing to listen to
            # The same for everybody, and for as long as this version runs.
            cache_hints={
                "tools/list": CacheHint(FRESH_MS, "public"),
                "server/discover": CacheHint(FRESH_MS, "public"),
                "resources/templates/list": CacheHint(FRESH_MS, "public"),
            },
        )
        for method, (params, handler) in RESOURCES.items():
            self._lowlevel_server.add_request_handler(method, params, handler)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[McpServices, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            self._check(name, arguments)
            return await super().call_tool(name, arguments, context)
        except MCPError:  # of the protocol, not of a tool
            raise
        except ToolError as error:  # the SDK's wrapping
            return failure_of(name, error.__cause__ or error).result()
        except Exception as error:
            return failure_of(name, error).result()

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[McpServices, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        # The SDK would take it for a mistake of ours.
        raise MCPError(INVALID_PARAMS, "there are no prompts")

    async def serve_streams(
        self,
        asked: MemoryObjectReceiveStream[SessionMessage | Exception],
        answering: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """Serve one client, until `asked` ends."""
        server = self._lowlevel_server  # the SDK serves streams of one's own only there
        await server.run(asked, answering, server.create_initialization_options())

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        if name not in self._names:
            there = ", ".join(self._names)
            raise CallRefused("not-found", f"there is no tool {name!r}; there are: {there}")
        for given in arguments:
            if given not in self._names[name]:
                there = ", ".join(self._names[name])
                raise CallRefused("invalid", f"there is no argument {given!r}; there are: {there}")
        for text in _texts(arguments):
            if storable(text) != text:
                raise CallRefused("invalid", "a text holds a NUL or half a character")


def _texts(arguments: dict[str, Any]) -> Iterator[str]:
    """Collect all strings in a value, at any depth."""
    ahead: list[Any] = [arguments]
    while ahead:
        match ahead.pop():
            case str() as text:
                yield text
            case dict() as within:
                ahead += [*within, *within.values()]
            case list() as within:
                ahead += within
