"""Tools that follow calls of the app's own tools, for clients without tasks."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult
from pydantic import Field

from penstock.mcp.calls import answered, calls_of
from penstock.mcp.tool_view import McpServices, ReadAccess, WriteAccess
from penstock.mcp.tools.define import define
from penstock.mcp.waiting import MAX_WAIT, Wait

CallId = Annotated[str, Field(min_length=1, max_length=64, description="From the tool.")]


async def get_result(
    tenant_view: ReadAccess,
    context: Context[McpServices, Any],
    call_id: CallId,
    wait: Wait = MAX_WAIT,
) -> CallToolResult:
    """Return the result of a call that was not finished in time: what its tool would have returned.
    Waits for it up to `wait` seconds; call it again until the result is there."""
    job = await calls_of(tenant_view).call(call_id)
    return await answered(tenant_view, context, job, wait)


async def cancel_call(
    tenant_view: WriteAccess, context: Context[McpServices, Any], call_id: CallId
) -> CallToolResult:
    """Cancel a call that is not finished. One that is finished stays as it is."""
    job = await calls_of(tenant_view).cancel(call_id)
    return await answered(tenant_view, context, job, 0)


TOOLS: tuple[Tool, ...] = (
    define(get_result, "Read the result of a call", reads=True, structured=False),
    define(cancel_call, "Cancel a call", repeatable=True, structured=False),
)
