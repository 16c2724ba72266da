"""The tools of the app: functions whose calls are jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp_types import CallToolResult, ToolAnnotations

from penstock.api.tool_calls import scope_of
from penstock.mcp.calls import PENDING, answered, calls_of, returns_content, returns_result
from penstock.mcp.tool_view import McpServices, tenant_view_for
from penstock.mcp.waiting import MAX_WAIT
from penstock.model.access import KeyScope

if TYPE_CHECKING:
    from penstock.engine.tools import AppTool

KEY = "penstock/key"
"""Key in the metadata of a call: the idempotency key of a program that calls."""


class OwnTool(Tool):
    """A tool whose arguments are checked by the handler of its jobs."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        return await self.fn(arguments, context)


def own_tool(tool: AppTool) -> Tool:
    """A tool of the app as one of the server."""
    scopes = (scope_of(tool), KeyScope.READ)

    async def call(arguments: dict[str, Any], context: Context[McpServices, Any]) -> CallToolResult:
        tenant_view = tenant_view_for(context.request_context, *scopes)
        await tenant_view.admit()
        key = (context.request_context.meta or {}).get(KEY)
        job = await calls_of(tenant_view).begin(
            tool, arguments, key=key if isinstance(key, str) else None
        )
        return await answered(tenant_view, context, job, MAX_WAIT)

    return OwnTool(
        fn=call,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        parameters=tool.parameters,
        fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=_output(tool)),
        is_async=True,
        context_kwarg=None,
        annotations=ToolAnnotations(read_only_hint=True)
        if tool.read_only
        else ToolAnnotations(
            read_only_hint=False, destructive_hint=tool.destructive, idempotent_hint=tool.repeatable
        ),
    )


def _output(tool: AppTool) -> dict[str, Any] | None:
    """The schema of what a call returns: the result, or that it is not finished yet."""
    if returns_result(tool) or returns_content(tool):
        return None
    result = dict(tool.result)
    definitions = result.pop("$defs", None)
    schema = {"type": "object", "anyOf": [result, PENDING]}
    return schema if definitions is None else schema | {"$defs": definitions}
