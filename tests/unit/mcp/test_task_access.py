"""A key that may only read work by a tool does not end it by the protocol's own method."""

from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from penstock.mcp import tasks
from penstock.mcp.tools import all_work
from penstock.mcp.tools.status import SearchWork
from penstock.model.access import Caller, KeyScope


class Stops:
    """A research service that notes what is stopped."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    async def stop(self, task_id: str, *, tenant: str) -> None:
        self.stopped.append(task_id)


@pytest.fixture
def research(monkeypatch: pytest.MonkeyPatch) -> Stops:
    research = Stops()

    def tenant_view_for(ctx: Caller, *scopes: KeyScope) -> Any:
        return SimpleNamespace(research=research, tenant=ctx.tenant, caller=ctx)

    monkeypatch.setattr(tasks, "require_client_extension", lambda ctx, name: None)
    monkeypatch.setattr(tasks, "_check_header", lambda ctx, task_id: None)
    monkeypatch.setattr(tasks, "tenant_view_for", tenant_view_for)
    return research


async def cancel(*tools: str) -> None:
    key: Any = Caller("default", frozenset(KeyScope), "key", tools=frozenset(tools) or None)
    named: Any = SimpleNamespace(task_id="research.thesis.1")
    await tasks.TasksExtension([SearchWork()])._cancel(key, named)


async def test_only_a_key_that_may_stop_research_cancels_it(research: Stops) -> None:
    with pytest.raises(MCPError, match="may only call tools: get_status"):
        await cancel("get_status")
    with pytest.raises(MCPError, match="no such task"):
        await cancel("stop_task")
    assert research.stopped == []
    await cancel("get_status", "stop_task")
    await cancel()
    assert research.stopped == ["thesis"] * 2


def test_whoever_may_begin_an_answer_may_end_it() -> None:
    assert {work.kind: work.ended_by for work in all_work() if work.ended_by} == {
        "answer": ("ask",),
        "research": ("stop_task",),
    }
