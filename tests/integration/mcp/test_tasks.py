"""Tools that take long as MCP tasks: what a call has begun is followed by an id that any process on
the queue knows, over either transport."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.answers import DOCUMENTS, QUESTION, content
from tests.support.answers_config import MANY_WORDS, NAMES
from tests.support.answers_config import settings as answer_settings
from tests.support.mcp_clients import (
    ERAS,
    TASKS,
    Agents,
    HttpWire,
    StdioWire,
    Talk,
    Wire,
    begin,
    ended,
    envelope,
    headers_for,
    over_http,
)
from tests.support.model_server import ANSWER, ModelServer, Reply
from tests.support.research import ResearchSite
from tests.support.research_config import PATIENT
from tests.support.research_config import settings as research_settings
from tests.support.sampling import some_of
from tests.support.serve_process import Host, Served
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(120)
GONE = {"code": -32602, "message": "there is no such task"}
NOBODY = "0" * 32


@pytest.fixture
def host(host: Host, model: ModelServer) -> Host:
    content(model)
    host.others |= answer_settings(model)
    return host


@asynccontextmanager
async def on_http(served: Served, key: str | None = None) -> AsyncIterator[Wire]:
    async with served.client(key) as client:
        yield HttpWire(client)


@asynccontextmanager
async def on_stdio(host: Host, *arguments: str) -> AsyncIterator[Wire]:
    talk = await Talk.start(host.cli, *Agents(host).command(*arguments))
    try:
        yield StdioWire(talk)
    finally:
        talk.close()
        await talk.end()


async def fill(wire: Wire) -> None:
    for name in NAMES:
        task = await begin(wire, "ingest", text=DOCUMENTS[name], title=f"About {name}", wait=50)
        done = await ended(wire, task["taskId"])
        assert done["result"]["structuredContent"]["state"] == "completed"


async def plain(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers by itself."""
    result: dict[str, Any] = (await wire.ask("tools/call", name=tool, arguments=arguments))[
        "result"
    ]
    assert result["resultType"] == "complete", result
    return dict(result["structuredContent"])


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_question_becomes_a_task_whose_result_is_the_answer(
    transport: str, host: Host, model: ModelServer
) -> None:
    opened = on_http(host.serve()) if transport == "http" else on_stdio(host)
    async with opened as wire:
        told = (await wire.ask("server/discover"))["result"]["capabilities"]
        assert told["extensions"] == {"io.modelcontextprotocol/tasks": {}}
        await fill(wire)
        model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05)
        task = await begin(wire, "ask", question=QUESTION)
        assert (task["status"], task["ttlMs"], task["pollIntervalMs"]) == ("working", None, 1000)
        assert not {"result", "error", "inputRequests"} & task.keys()
        seen = (await wire.ask("tasks/get", taskId=task["taskId"]))["result"]
        assert (seen["taskId"], seen["createdAt"]) == (task["taskId"], task["createdAt"])
        done = await ended(wire, task["taskId"])
        assert done["status"] == "completed"
        assert done["lastUpdatedAt"] > done["createdAt"]
        answer = done["result"]["structuredContent"]
        assert (answer["state"], answer["mode"]) == ("completed", "model")
        assert done["result"]["content"][0]["text"].startswith(f"Answer {answer['answer_id']}")
        assert await plain(wire, "get_answer", answer_id=answer["answer_id"], wait=50) == answer
        for method in ("tasks/cancel", "tasks/update"):  # harmless: it is over
            more: dict[str, Any] = {"inputResponses": {"a": {}}} if "update" in method else {}
            acked = (await wire.ask(method, taskId=task["taskId"], **more))["result"]
            assert acked.keys() == {"resultType", "_meta"}
        again = await ended(wire, task["taskId"])
        assert again["result"]["structuredContent"] == answer


async def test_a_client_that_takes_no_tasks_is_answered_as_ever(host: Host) -> None:
    async with on_http(host.serve()) as wire:
        called: dict[str, Any] = {"name": "ingest", "arguments": {"text": "a mill", "wait": 50}}
        result = (await wire.ask("tools/call", _meta={}, **called))["result"]
        assert result["structuredContent"]["state"] == "completed"
        assert "penstock/task" not in str(result)
        at_once = await plain(wire, "ingest", text="another mill", wait=0)
        assert at_once["state"] == "processing", "without a wait there is nothing to follow"
        refused = (await wire.ask("tasks/get", _meta={}, taskId=f"answer.{NOBODY}"))["error"]
        assert refused["code"] == -32021
        assert "io.modelcontextprotocol/tasks" in str(refused["data"]["requiredCapabilities"])


async def test_a_task_outlives_its_server_and_is_known_to_the_next(
    host: Host, model: ModelServer
) -> None:
    """Killed while the answer is written; the other process is of another transport."""
    served = host.serve()
    async with on_http(served) as wire:
        await fill(wire)
        model.script[ANSWER] = Reply(MANY_WORDS, pause=0.5)
        task = await begin(wire, "ask", question=QUESTION)
        await until(lambda: bool(model.asked(ANSWER)), "the model to be asked")
        served.kill()
    model.script[ANSWER] = MANY_WORDS
    async with on_stdio(host) as wire:
        assert (await wire.ask("tasks/get", taskId=task["taskId"]))["result"]["taskId"]
        done = await ended(wire, task["taskId"])
        assert done["createdAt"] == task["createdAt"]
        assert done["result"]["structuredContent"]["state"] == "completed"


async def test_a_cancelled_task_ends_what_was_begun(host: Host, model: ModelServer) -> None:
    async with on_http(host.serve()) as wire:
        await fill(wire)
        model.script[ANSWER] = Reply(hang=True)
        task = await begin(wire, "ask", question=QUESTION)
        await until(lambda: bool(model.asked(ANSWER)), "the model to be asked")
        await wire.ask("tasks/cancel", taskId=task["taskId"])
        over = await ended(wire, task["taskId"])
        assert over["status"] == "cancelled"
        assert "result" not in over
        answer = await plain(wire, "get_answer", answer_id=task["taskId"].partition(".")[2])
        assert answer["state"] == "cancelled"


async def test_a_cancelled_document_is_not_worked_on_until_it_is_given_again(host: Host) -> None:
    async with on_http(host.serve("--no-workers")) as wire:
        task = await begin(wire, "ingest", text="a mill", wait=50)
        await wire.ask("tasks/cancel", taskId=task["taskId"])
        assert (await ended(wire, task["taskId"]))["status"] == "cancelled"
        await asyncio.to_thread(host.cli, "worker", "--config", host.config(), "--drain")
        over = await ended(wire, task["taskId"])
        assert (over["status"], "result" in over) == ("cancelled", False)
        assert (await plain(wire, "search_documents", query="mill"))["passages"] == []
        again = await begin(wire, "ingest", text="a mill and a race", wait=50)
        await asyncio.to_thread(host.cli, "worker", "--config", host.config(), "--drain")
        done = await ended(wire, again["taskId"])
        assert done["result"]["structuredContent"]["searchable"]
        assert len((await plain(wire, "search_documents", query="mill"))["passages"]) == 1


async def test_a_foreign_task_looks_like_one_that_is_not_there(host: Host) -> None:
    mine, theirs = host.key("mine"), host.key("theirs", tenant="b")
    reader = host.key("reader", scopes="read")
    served = host.serve("--no-workers", require_key=True)
    async with on_http(served, mine) as wire:
        made = [
            await begin(wire, "ask", question=QUESTION),
            await begin(wire, "ingest", text="a mill", wait=50),
        ]
        task_id = (await plain(wire, "create_task", question="How?"))["task_id"]
        await plain(wire, "queue_searches", task_id=task_id, queries=["mill"])
        made.append(await begin(wire, "get_status", task_id=task_id, wait=50, until="end"))
        ids = [task["taskId"] for task in made]
        for one in ids:
            assert (await wire.ask("tasks/get", taskId=one))["result"]["status"] == "working"
        for nonsense in ("x", "answer.", "document.?", "document.WzFd", "research.a", ".", "job.1"):
            assert (await wire.ask("tasks/get", taskId=nonsense))["error"] == GONE, nonsense
    async with on_http(served, theirs) as wire:
        for one in ids:
            assert (await wire.ask("tasks/get", taskId=one))["error"] == GONE
            assert (await wire.ask("tasks/cancel", taskId=one))["error"] == GONE
            given: dict[str, Any] = {"inputResponses": {}}
            assert (await wire.ask("tasks/update", taskId=one, **given))["error"] == GONE
    async with on_http(served, reader) as wire:
        for one in ids:
            assert (await wire.ask("tasks/get", taskId=one))["result"]["status"] == "working"
            refused = (await wire.ask("tasks/cancel", taskId=one))["error"]
            assert refused["data"] == {"code": "forbidden"}


async def test_requests_name_their_task_in_a_header_too_and_only_in_the_new_era(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        wire = HttpWire(client)
        task = await begin(wire, "ingest", text="a mill", wait=50)
        message = envelope("tasks/get", taskId=task["taskId"])
        for wrong in ({"Mcp-Name": "another"}, {"Mcp-Name": ""}):
            answer = await client.post(
                "/mcp",
                json=_declaring(message),
                headers={**headers_for(message), **wrong},
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
        old = envelope("tasks/get", "old", taskId=task["taskId"])
        answer = await client.post("/mcp", json=old, headers=headers_for(old, "old"))
        assert "-32601" in answer.text


def _declaring(message: dict[str, Any]) -> dict[str, Any]:
    meta = message["params"]["_meta"]
    return {
        **message,
        "params": {
            **message["params"],
            "_meta": {**meta, **TASKS},
        },
    }


async def searching(wire: Wire, *queries: str) -> tuple[str, dict[str, Any]]:
    """A research task, and the MCP task that follows its searches to their end."""
    task_id = str((await plain(wire, "create_task", question="How?"))["task_id"])
    await plain(wire, "queue_searches", task_id=task_id, queries=list(queries))
    return task_id, await begin(wire, "get_status", task_id=task_id, wait=50, until="end")


async def test_searches_are_followed_to_their_end_and_stopped_by_a_cancel(
    host: Host, library_site: ResearchSite
) -> None:
    host.others = research_settings(library_site) | PATIENT
    served = host.serve("--no-workers")
    async with on_http(served) as wire:
        stopped_id, stopped = await searching(wire, "mills")
        await wire.ask("tasks/cancel", taskId=stopped["taskId"])
        over = await ended(wire, stopped["taskId"])
        assert over["result"]["structuredContent"]["status"] == "paused"
        assert (await plain(wire, "resume_task", task_id=stopped_id))["queued"] == 1
        task_id, task = await searching(wire, "wheels", "races")
        assert (task["status"], task["pollIntervalMs"]) == ("working", 5000)
        assert task["statusMessage"].startswith("0/2 searches finished")
        await asyncio.to_thread(host.cli, "worker", "--config", host.config(), "--drain")
        done = await ended(wire, task["taskId"])
        state = done["result"]["structuredContent"]
        assert (state["status"], state["progress"], len(state["results"])) == (
            "completed",
            "2/2",
            3,
        )
        await plain(wire, "queue_searches", task_id=task_id, queries=["later"])
        assert (await ended(wire, task["taskId"]))["status"] == "completed", "it stays over"


async def test_waiting_for_the_end_needs_no_tasks(host: Host, library_site: ResearchSite) -> None:
    host.others = research_settings(library_site) | PATIENT
    async with over_http(host.serve()) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            told = (await client.call_tool(tool, arguments)).structured_content
            assert isinstance(told, dict)
            return told

        task_id = (await call("create_task", question="How?"))["task_id"]
        await call("queue_searches", task_id=task_id, queries=["wheels", "mills"])
        done = await call("get_status", task_id=task_id, wait=50, until="end")
        assert (done["status"], done["progress"]) == ("completed", "2/2")


@pytest.mark.parametrize("era", some_of(ERAS, "new"))
async def test_progress_is_told_four_times_a_second_at_most(
    era: str, host: Host, model: ModelServer
) -> None:
    served = host.serve()
    async with on_http(served) as wire:
        await fill(wire)
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05)  # a token, and so a change, each
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with over_http(served, era) as client:
        begun = time.monotonic()
        result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=hear)
        took = time.monotonic() - begun  # when each was sent, nobody knows who hears it later
    assert result.structured_content is not None
    assert result.structured_content["state"] == "completed"
    told = [progress for progress, _ in heard]
    assert told == sorted(set(told)), "it only grows"
    assert "writing" in [message for _, message in heard]
    assert len(heard) > 2
    assert len(heard) <= 2 + 4 * took
