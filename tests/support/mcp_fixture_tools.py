"""Tools that the conformance suite of MCP asks for and that need no queue: questions to the client
before anything is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

from penstock.mcp.tool_view import McpServices

Call = Context[McpServices, Any]

PICTURE = ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")
SOUND = AudioContent(type="audio", data="UklGRgAAAABXQVZF", mime_type="audio/wav")
WORDS = TextContent(type="text", text="a text")
RESOURCE = EmbeddedResource(
    type="resource",
    resource=TextResourceContents(uri="test://resource", mime_type="text/plain", text="a resource"),
)


def question(message: str, *fields: str) -> ElicitRequest:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field: {"type": "string"} for field in fields},
        "required": list(fields),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def prompt(text: str) -> CreateMessageRequest:
    said = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=100))


NAME = {"user_name": question("Your name?", "name")}
CAPITAL = {"capital_question": prompt("What is the capital of France?")}
ROOTS = {"client_roots": ListRootsRequest()}
CONFIRM = {"confirm": question("Please confirm", "ok")}


def asking(name: str, *rounds: Mapping[str, InputRequest], stateful: bool = False) -> Tool:
    """A tool that asks, round by round, before it answers."""

    async def ask(context: Call) -> CallToolResult | InputRequiredResult:
        given, step = context.input_responses or {}, int(context.request_state or 0)
        if rounds[step].keys() <= given.keys():
            step += 1
        if step == len(rounds):
            text = f"state-ok, Hello: {given}"
            return CallToolResult(content=[TextContent(type="text", text=text)])
        state = str(step) if stateful else None
        return InputRequiredResult(input_requests=dict(rounds[step]), request_state=state)

    return _tool(ask, name)


async def ask_what_can_be_answered(context: Call) -> InputRequiredResult:
    """Only in ways that the client has declared."""
    declared = context.request_context.session.client_capabilities
    assert declared is not None
    asked: dict[str, InputRequest] = {}
    if declared.elicitation is not None:
        asked |= NAME
    if declared.sampling is not None:
        asked |= CAPITAL
    return InputRequiredResult(input_requests=asked)


async def need_sampling(context: Call) -> CallToolResult:
    """Refuse clients that cannot be asked for a text."""
    declared = context.request_context.session.client_capabilities
    if declared is None or declared.sampling is None:
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "it needs sampling", data)
    return CallToolResult(content=[WORDS])


def _tool(function: Any, name: str) -> Tool:
    return Tool.from_function(function, name, description="A fixture.", structured_output=False)


INPUT = "test_input_required_result_"
TOOLS = [
    _tool(need_sampling, "test_missing_capability"),
    _tool(ask_what_can_be_answered, f"{INPUT}capabilities"),
    asking(f"{INPUT}elicitation", NAME),
    asking(f"{INPUT}sampling", CAPITAL),
    asking(f"{INPUT}list_roots", ROOTS),
    asking(f"{INPUT}request_state", CONFIRM, stateful=True),
    asking(f"{INPUT}tampered_state", CONFIRM, stateful=True),
    asking(
        f"{INPUT}multiple_inputs", {**NAME, "greeting": prompt("Greet"), **ROOTS}, stateful=True
    ),
    asking(
        f"{INPUT}multi_round",
        {"step1": question("Step 1: your name?", "name")},
        {"step2": question("Step 2: your colour?", "color")},
        stateful=True,
    ),
]
