"""The MCP server of an app. One object serves clients of both protocol versions, the handshake of
2025-11-25 and the single requests of 2026-07-28, on any transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from penstock import __version__
from penstock.api.tool_names import check_names
from penstock.mcp.errors import CallRefused, failure_of
from penstock.mcp.resources import RESOURCES
from penstock.mcp.tasks import TasksExtension, TaskWork
from penstock.mcp.tool_view import McpServices
from penstock.mcp.tools import FOLLOWING, all_tools, all_work, instructions
from penstock.model.access import Caller
from penstock.text.normalize import storable

NAME = "penstock"
FRESH_MS = 300_000


class PenstockMCP(MCPServer[McpServices]):
    """An MCP server whose tools report all errors as codes and sentences."""

    def __init__(
        self,
        service: McpServices,
        tools: Sequence[Tool] = (),
        work: Sequence[TaskWork] = (),
        families: Collection[str] | None = None,
    ) -> None:
        """`tools` are added to those offered, with the work that they start. `families`: which are
        offered; else the configuration says. ConfigError if two have the same name."""

        @asynccontextmanager
        async def lifespan(_: MCPServer[McpServices]) -> AsyncIterator[McpServices]:
            yield service

        server, own = service.app.config.server, service.app.tools
        operators = server.mcp_operator_tools
        families = server.mcp_tools if families is None else families
        check_names(service.app, families)
        offered = [*all_tools(families, own.values(), operators=operators), *tools]
        self._service = service
        self._names = {tool.name: tuple(tool.parameters["properties"]) for tool in offered}
        self._open = {one.name for one in offered if one.parameters.get("additionalProperties")}
        super().__init__(
            NAME,
            title="Penstock",
            description="Durable tools, research tasks, searchable documents, and answers.",
            instructions=instructions(families, list(own), operators=operators),
            version=__version__,
            tools=offered,
            extensions=[TasksExtension([*all_work(families), *work])],
            lifespan=lifespan,
            subscriptions=False,  # there is nothing to listen to
            # The same for as long as this version runs; the tools depend on the key.
            cache_hints={
                "tools/list": CacheHint(FRESH_MS, "private"),
                "server/discover": CacheHint(FRESH_MS, "public"),
                "resources/templates/list": CacheHint(FRESH_MS, "public"),
            },
        )
        resources = RESOURCES if "research" in families else {}
        for method, (params, handler) in resources.items():
            self._lowlevel_server.add_request_handler(method, params, handler)
        self._lowlevel_server.add_request_handler(
            "tools/list", PaginatedRequestParams, self._list_for_caller
        )

    async def _list_for_caller(
        self, ctx: ServerRequestContext[McpServices, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """The tools that the caller may call."""
        caller = self._service.caller_of(ctx.request)
        listed = await self.list_tools()
        return ListToolsResult(tools=[one for one in listed if _may_call(caller, one.name)])

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[McpServices, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            self._check(name, arguments, context)
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

    def _check(
        self, name: str, arguments: dict[str, Any], context: Context[McpServices, Any] | None
    ) -> None:
        if name in self._names and context is not None:
            caller = self._service.caller_of(context.request_context.request)
            if not _may_call(caller, name):
                raise CallRefused("forbidden", str(caller.confined()))
        if name not in self._names:
            there = ", ".join(self._names)
            raise CallRefused("not-found", f"there is no tool {name!r}; there are: {there}")
        for given in arguments:
            if given not in self._names[name] and name not in self._open:
                there = ", ".join(self._names[name])
                raise CallRefused("invalid", f"there is no argument {given!r}; there are: {there}")
        for text in _texts(arguments):
            if storable(text) != text:
                raise CallRefused("invalid", "a text holds a NUL or half a character")


def _may_call(caller: Caller, tool: str) -> bool:
    """Whether a key allows a tool. What follows calls checks which those are."""
    return caller.may_call(tool) or tool in FOLLOWING


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
