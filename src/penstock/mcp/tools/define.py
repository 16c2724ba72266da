"""Makes a tool of a function: its docstring is the description, its types are the schemas."""

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
    structured: bool = True,
) -> Tool:
    """Define a tool. `reads`: it changes nothing. `repeatable`: repeating the call changes nothing
    more. `outside`: it makes Penstock contact other services. `structured`: its answer has a
    schema. No tool destroys stored data."""
    tool = Tool.from_function(
        function,
        title=title,
        description=flowing(function.__doc__ or ""),
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=outside)
        if reads  # the others mean nothing then
        else ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=repeatable,
            open_world_hint=outside,
        ),
        structured_output=structured,
    )
    tool.parameters["additionalProperties"] = False  # `PenstockMCP` keeps to it
    _shorten(tool.parameters)
    if not structured:
        return tool
    listed, whole = tool.output_schema, answer_schema(tool)
    assert listed is not None
    listed.clear()  # in place: the SDK has it from there
    listed |= _outline(whole)
    return tool


def answer_schema(tool: Tool) -> dict[str, Any]:
    """Build the output schema of a tool. All fields are required, so none has a default."""
    model = tool.fn_metadata.output_model
    assert model is not None
    schema: dict[str, Any] = model.model_json_schema(mode="serialization")
    if "$ref" in schema:
        schema |= schema["$defs"].pop(_name(schema.pop("$ref")))
    _shorten(schema)
    return schema


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _outline(schema: dict[str, Any]) -> dict[str, Any]:
    """Reduce a schema to fields and types: every conversation pays for what is listed, and results
    explain themselves."""

    def types(field: dict[str, Any]) -> Any:
        if "anyOf" in field:
            return [types(one) for one in field["anyOf"]]
        return schema["$defs"][_name(field["$ref"])]["type"] if "$ref" in field else field["type"]

    known = {name: {"type": types(one)} for name, one in schema["properties"].items()}
    return {"type": "object", "properties": known}


def flowing(text: str) -> str:
    """Remove line breaks inside paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


_UNTOLD = ("minLength", "maxLength", "minItems", "maxItems", "pattern", "exclusiveMinimum")
"""Limits that calls seldom reach; errors mention them."""


def _shorten(schema: Any) -> None:
    """Remove what a model pays for and does not need: titles that repeat names, limits, and null
    for optional arguments. Calls are still validated against all of it."""
    match schema:
        case dict():
            if isinstance(schema.get("title"), str):
                del schema["title"]
            for name in _UNTOLD:
                schema.pop(name, None)
            match schema:
                case {"anyOf": [dict(one), {"type": "null"}], "default": None}:
                    del schema["anyOf"], schema["default"]
                    schema |= one
                    _shorten(schema)
            for within in schema.values():
                _shorten(within)
        case list():
            for within in schema:
                _shorten(within)
