"""Names of built-in MCP tools, which an app's own cannot have beside them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app import Penstock

BUILT_IN = {
    "own": ("get_result", "cancel_call"),
    "research": (
        "create_task",
        "queue_searches",
        "get_status",
        "stop_task",
        "resume_task",
        "list_tasks",
    ),
    "documents": ("search_documents", "get_page", "list_documents", "list_collections", "ingest"),
    "answers": ("ask", "get_answer"),
}
OPERATORS = ("lane_status", "list_dead_letters", "redrive")


def check_names(app: Penstock, families: Collection[str]) -> None:
    """Raise ConfigError if a tool of the app has the name of a built-in one that is offered too."""
    if "own" not in families:
        return
    taken = {name for family in families for name in BUILT_IN[family]}
    if app.config.server.mcp_operator_tools:
        taken |= set(OPERATORS)
    for name in app.tools:
        if name in taken:
            raise ConfigError(
                f"the app's tool {name!r} has the name of a built-in one: give it another, or "
                "leave out the built-in ones (mcp_tools, --tools)"
            )
