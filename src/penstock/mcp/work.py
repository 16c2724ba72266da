"""Durable work behind an MCP task. A task is no row of its own; its id names the work, so it lives
as long, and every process on the same queue and store knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_types import CallToolResult

from penstock.mcp.tool_view import ToolView

SOON_SECONDS = 1.0
LATER_SECONDS = 5.0
"""How long to wait before asking again: for what takes seconds, and for what takes minutes."""


@dataclass(slots=True, frozen=True)
class WorkStatus:
    """The status of such work."""

    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    said: str
    created_at: float
    changed_at: float
    poll_seconds: float = SOON_SECONDS
    lasts_seconds: float | None = None
    """How long it is kept from `created_at` on; None: until somebody deletes it."""
    result: CallToolResult | None = None
    """Of what is completed: what the tool would have answered."""
    error: Mapping[str, Any] | None = None
    """Of what failed in the way of a protocol, as JSON-RPC has it. Tools tell what went wrong as a
    result."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What the client has still to answer, by key."""


class TaskWork(ABC):
    """One kind of it. `name` is what follows the kind in a task's id; one that names nothing of
    the tenant raises the error that the library has for it."""

    kind: str

    def task_id(self, name: str) -> str:
        return f"{self.kind}.{name}"

    @abstractmethod
    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus: ...

    @abstractmethod
    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        """Harmless where it is over."""

    async def give(self, tenant_view: ToolView, name: str, answers: Mapping[str, Any]) -> None:
        """What the client answers to what it was asked. Keys that nobody has asked for are passed
        over; so is everything, by work that never asks."""
        await self.standing(tenant_view, name)


async def changed_at(tenant_view: ToolView, log: str, version: int, created_at: float) -> float:
    """When a log last grew."""
    newest = await tenant_view.changes(log, version - 1, 1) if version > 0 else []
    return newest[0].at if newest else created_at
