"""Calls of the app's tools: who may make them, the jobs they are, and how they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.api.tenant_view import TenantView
from penstock.errors import JobNotFound, ToolNotFound, ValidationError
from penstock.model.access import KeyScope
from penstock.model.payload import encode_payload

if TYPE_CHECKING:
    from penstock.engine.tools import AppTool
    from penstock.model.access import Caller
    from penstock.model.job import Job


def scope_of(tool: AppTool) -> KeyScope:
    """What a key needs to call a tool."""
    return KeyScope.READ if tool.read_only else KeyScope.WRITE


class ToolCalls:
    """The tools that a caller may call, and the calls made of them in the caller's tenant."""

    def __init__(self, tenant_view: TenantView, caller: Caller) -> None:
        self._view = tenant_view
        self._caller = caller

    @property
    def tools(self) -> Mapping[str, AppTool]:
        """By name, in the order they were registered."""
        may = self._caller.may_call
        return {name: tool for name, tool in self._view.app.tools.items() if may(name)}

    def tool(self, name: str) -> AppTool:
        """The tool of that name; ToolNotFound, also for one that the caller may not call."""
        if (found := self.tools.get(name)) is None:
            raise ToolNotFound(name, list(self.tools))
        return found

    async def begin(
        self,
        tool: AppTool,
        arguments: dict[str, Any],
        *,
        key: str | None = None,
        job_id: str | None = None,
    ) -> Job:
        """The job of a call: a new one, or that of the same call before. ValidationError says what
        is wrong with the arguments, KeyConflict that the key is that of another call."""
        if key is not None and tool.key is not False:
            raise ValidationError(f"{tool.name!r} makes the key of a call from its arguments")
        tool.handler.arguments.parse(encode_payload(arguments))
        known = tool.key_of(arguments) if key is None else key
        return await self._view.enqueue(
            tool.name,
            arguments,
            key=known,
            job_id=job_id,
            replace=None if known is None else "finished",
        )

    async def call(self, call_id: str) -> Job:
        """The job of a call; JobNotFound if there is none, or it is not of the caller's tools."""
        job = await self._view.job(call_id)
        if job.kind not in self.tools:
            raise JobNotFound(call_id)
        return job

    async def cancel(self, call_id: str) -> Job:
        """End a call; no effect if it is over."""
        await self.call(call_id)
        return await self._view.cancel(call_id)
