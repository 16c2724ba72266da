"""From a function to a tool: its docstring is what a model is told, its types are the schemas."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations


def define(
    function: Callable[..., Any],
    title: str,
    *,
    reads: bool = False,
    repeatable: bool = False,
    outside: bool = False,
) -> Tool:
    """`reads`: it changes nothing. `repeatable`: the same call again changes nothing more.
    `outside`: it makes Penstock ask others. None of them destroys what was stored."""
    tool = Tool.from_function(
        function,
        title=title,
        description=flowing(function.__doc__ or ""),
        annotations=ToolAnnotations(
            title=title,
            read_only_hint=reads,
            destructive_hint=False,
            idempotent_hint=reads or repeatable,
            open_world_hint=outside,
        ),
        structured_output=True,
    )
    tool.parameters["additionalProperties"] = False  # `PenstockMCP` keeps to it
    for schema in (tool.parameters, tool.output_schema):
        _shorten(schema)
    return tool


def flowing(text: str) -> str:
    """Paragraphs without the breaks that our line length made."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _shorten(schema: Any) -> None:
    """Without the titles that are only names again: every model pays for reading them."""
    match schema:
        case dict():
            if isinstance(schema.get("title"), str):
                del schema["title"]
            for within in schema.values():
                _shorten(within)
        case list():
            for within in schema:
                _shorten(within)
