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
"""Poll intervals: for work that takes seconds, and for work that takes minutes."""


@dataclass(slots=True, frozen=True)
class WorkStatus:
    """The status of such work."""

    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    said: str
    created_at: float
    changed_at: float
    poll_seconds: float = SOON_SECONDS
    lasts_seconds: float | None = None
    """How long it is kept after `created_at`; None: until it is deleted."""
    result: CallToolResult | None = None
    """Result of completed work: what the tool would have returned."""
    error: Mapping[str, Any] | None = None
    """Protocol error of failed work, as JSON-RPC. Tools report their errors as results."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Questions that the client has to answer, by key."""


class TaskWork(ABC):
    """One kind of work. `name` is the part of a task's id after the kind; if the tenant has nothing
    of that name, the service's own error is raised."""

    kind: str

    def task_id(self, name: str) -> str:
        return f"{self.kind}.{name}"

    @abstractmethod
    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus: ...

    @abstractmethod
    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        """Cancel the work; no effect if it is finished."""

    async def give(self, tenant_view: ToolView, name: str, answers: Mapping[str, Any]) -> None:
        """Accept the client's answers. Unknown keys are ignored; work that never asks ignores
        everything."""
        await self.standing(tenant_view, name)


async def changed_at(tenant_view: ToolView, log: str, version: int, created_at: float) -> float:
    """Return when a log last changed."""
    newest = await tenant_view.changes(log, version - 1, 1) if version > 0 else []
    return newest[0].at if newest else created_at
