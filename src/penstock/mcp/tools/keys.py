"""Idempotency keys of tool calls."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from penstock.mcp.errors import CallRefused
from penstock.mcp.tool_view import ToolView
from penstock.model.ids import child_id

Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=255,
        description="Idempotency key: repeating the call with it creates nothing new.",
    ),
]


def id_for(tenant_view: ToolView, tool: str, key: str | None) -> str | None:
    """Derive the id of what a tool creates from a key; None: a new id."""
    return None if key is None else child_id(f"{tenant_view.tenant}\x1fmcp {tool}", "once", key, 1)


async def check_same(
    tenant_view: ToolView, key: str | None, question: str, stored: str, *others: tuple[Any, Any]
) -> None:
    """Raise CallRefused if the key was used for something else, however long ago. Stored texts are
    masked. `others`: further arguments that are stored."""
    if key is None:
        return
    (masked,) = await tenant_view.documents.mask([" ".join(question.split())])
    if masked != stored:
        raise CallRefused("key-reused", "this key was used for another question; take a new one")
    if any(asked != kept for asked, kept in others):
        raise CallRefused("key-reused", "this key was used with other arguments; take a new one")
