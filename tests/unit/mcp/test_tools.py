"""Parts of the MCP server: what is told of errors, how answers are cut, how waits end."""

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pytest

from penstock.app import Penstock
from penstock.errors import PenstockError, QueueUnavailable
from penstock.mcp.errors import CallRefused, failure_of
from penstock.mcp.results import MAX_CHARACTERS, fitting
from penstock.mcp.server import PenstockMCP
from penstock.mcp.tool_view import McpServices
from penstock.mcp.tools import INSTRUCTIONS, all_tools, instructions
from penstock.mcp.tools.define import answer_schema
from penstock.mcp.waiting import Stopping
from penstock.model.access import EVERYTHING, Caller
from penstock.model.research import PageState
from penstock.server.problems import problem_of
from penstock.wire.tasks import PageProgress
from penstock.wire.view import WireView

ARGUMENTS: dict[str, tuple[object, ...]] = {
    "JobFailed": ("job", "kind", None),
    "JobCancelled": ("job", "kind", None),
    "KeyConflict": ("key", "job"),
    "LaneBusy": ("lane", 0.0, "why"),
    "BudgetReached": ("budget tenant:a", 0.0, "why"),
    "Blocked": ("lane", "why"),
    "HttpError": ("said", 400),
    "FetchError": ("said", 400),
    "TooSlow": (5,),
    "DamagedRow": (),
    "JobEnded": ("job", "completed"),
    "LeaseLost": ("job", "step"),
    "SuspensionSwallowed": (),
    "StepMismatch": ("step", 1),
    "RunLater": (1.0,),
}


def _all(error: type[PenstockError]) -> Iterator[type[PenstockError]]:
    yield error
    for one in error.__subclasses__():
        if one.__module__ == error.__module__:
            yield from _all(one)


@pytest.mark.parametrize("kind", dict.fromkeys(_all(PenstockError)), ids=str)
def test_codes_are_those_of_the_http_api(kind: type[PenstockError]) -> None:
    error = kind(*ARGUMENTS.get(kind.__name__, ("said",)))
    problem = problem_of(error)
    assert failure_of("tool", error).code == ("internal" if problem is None else problem.code)


def test_addresses_and_what_nobody_foresaw_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        away = failure_of("tool", QueueUnavailable("cannot reach 10.1.2.3:5432"))
        broken = failure_of("tool", ValueError("Kim, born 1990-12-31, wrote this"))
    assert "10.1.2.3" not in away.message
    assert "10.1.2.3" in caplog.text, "but logged"
    assert broken.code == "internal"
    assert "ValueError" in broken.message
    assert "Kim" not in broken.message + caplog.text


def test_a_failure_is_told_to_programs_and_in_words() -> None:
    result = failure_of("tool", CallRefused("queue-full", "wait")).result()
    assert result.is_error
    assert result.structured_content == {"code": "queue-full", "message": "wait"}


@dataclass(frozen=True)
class Items(WireView):
    items: list[str]


@pytest.mark.parametrize("size", [10, 1000, 7000, 30_000])
async def test_answers_fit_and_hold_one_item_at_least(size: int) -> None:
    calls: list[int] = []

    async def ask(count: int) -> Items:
        calls.append(count)
        return Items(items=["x" * size] * count)

    answer = await fitting(ask, 50)
    assert len(answer.items) >= 1
    size_now = len(json.dumps(answer.as_dict(), separators=(",", ":")))
    assert size_now <= MAX_CHARACTERS or len(answer.items) == 1
    assert len(calls) <= 4
    if size == 10:
        assert len(answer.items) == 50


async def test_waits_end_when_the_stop_is_told_and_never_begin_after_it() -> None:
    stopping = Stopping()
    never = asyncio.Event()
    waits = [asyncio.create_task(stopping.unless(never.wait())) for _ in range(3)]
    assert await stopping.unless(asyncio.sleep(0, "news")) == "news"
    stopping.begin()
    assert await asyncio.gather(*waits) == [None] * 3
    assert await stopping.unless(never.wait()) is None


async def test_a_cancelled_wait_is_cancelled_and_not_answered() -> None:
    stopping = Stopping()
    waiting = asyncio.create_task(stopping.unless(asyncio.Event().wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_every_state_of_a_page_can_be_told() -> None:
    """Else a task whose page comes into a new one could not be looked at any more."""
    assert set(get_args(PageProgress)) == {*map(str, PageState), "none"}


async def test_the_list_of_tools_costs_a_conversation_less_than_4000_tokens() -> None:
    """Four characters a token, as English and JSON have on average."""
    tools = await served().list_tools()
    assert len(tools) == 13
    told = [tool.model_dump_json(by_alias=True, exclude_none=True) for tool in tools]
    assert sum(map(len, told)) / 4 < 4000
    assert len(INSTRUCTIONS) / 4 < 500


async def test_tools_of_operators_are_offered_where_that_is_set() -> None:
    plain = {tool.name for tool in await served().list_tools()}
    asked = {tool.name for tool in await served(mcp_operator_tools=True).list_tools()}
    assert asked - plain == {"lane_status", "list_dead_letters", "redrive"}
    assert plain < asked
    for name in asked - plain:
        assert name in instructions(operators=True)
        assert name not in instructions()


def served(**settings: Any) -> PenstockMCP:
    app = Penstock("sqlite:///unused.db", **settings)
    return PenstockMCP(McpServices(app, lambda _: Caller("default", EVERYTHING), Stopping()))


def test_what_is_told_of_arguments_and_answers() -> None:
    for tool in all_tools(operators=True):
        fields = answer_schema(tool)["properties"]
        assert tool.output_schema is not None
        assert list(tool.output_schema["properties"]) == list(fields)
        assert "title" not in tool.parameters
        for name, schema in tool.parameters["properties"].items():
            assert schema.get("description") or name in UNDESCRIBED, (tool.name, name)


UNDESCRIBED = {"cursor", "title", "max_results_per_query", "limit"}
"""Their names say it."""
