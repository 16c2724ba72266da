"""The reference page of the MCP tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from mcp.server.mcpserver.tools import Tool

from penstock.mcp.tool_view import WriteAccess
from penstock.mcp.tools import all_tools, calls, instructions
from penstock.mcp.tools.define import answer_schema
from tools.schema_words import row, section, type_of, without_enums

PAGE = """\
# MCP tools

<!-- Written by `python -m tools.reference` from src/penstock/mcp/tools. -->

What an agent is told of each tool, in these words; of answers it is told the fields and their
types. The first two are there where the app has [tools of its own](guide-tools.md), and return what
those return. The last three, and the last paragraph of the instructions, are there where
[`mcp_operator_tools`](reference-settings.md) is set. How to connect one is in the
[guide](guide-mcp.md). Over HTTP a tool needs a key with the scope that stands beside it. Every
answer is also given as text; errors are `code` and `message`, and what to do about which code is
in the [guide](guide-mcp.md#errors).

{tools}

## Parts of answers

{parts}

## Instructions

What an agent is told before it asks for anything:

> {instructions}
"""


def mcp_page() -> str:
    tools = [*calls.TOOLS, *all_tools(operators=True)]
    parts: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        if tool.output_schema is not None:
            parts |= _answer(tool).get("$defs", {})
    return PAGE.format(
        tools="\n\n".join(map(_tool, tools)),
        parts="\n\n".join(section(name, parts[name]) for name in sorted(parts)),
        instructions=instructions(operators=True).replace("\n\n", "\n>\n> "),
    )


def _tool(tool: Tool) -> str:
    hints = get_type_hints(tool.fn, include_extras=True)
    scope = "write" if hints["tenant_view"] == WriteAccess else "read"
    return "\n\n".join(
        [
            f"## {tool.name}",
            f"{tool.title}; scope `{scope}`{_hints(tool)}.",
            tool.description,
            _table("argument", tool.parameters),
            *([] if tool.output_schema is None else [_table("answer", _answer(tool))]),
        ]
    )


def _answer(tool: Tool) -> dict[str, Any]:
    schema = answer_schema(tool)
    told: dict[str, Any] = without_enums(schema, schema.get("$defs", {}))
    return told


def _hints(tool: Tool) -> str:
    assert tool.annotations is not None
    told = {
        "changes nothing": tool.annotations.read_only_hint,
        "may be repeated": tool.annotations.idempotent_hint and not tool.annotations.read_only_hint,
        "asks others": tool.annotations.open_world_hint,
    }
    return "".join(f"; {words}" for words, given in told.items() if given)


def _table(what: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ()) if what == "argument" else ()
    rows = [
        row(
            f"`{name}`",
            type_of(one) + (", required" if name in needed else ""),
            one.get("description", ""),
        )
        for name, one in schema["properties"].items()
    ]
    return "\n".join([f"| {what} | | |", "|---|---|---|", *rows])
