"""Tools of an app: functions that any client calls, each call a job that outlives both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_clients import (
    WAYS,
    Agents,
    HttpWire,
    Wire,
    begin,
    call,
    ended,
    over_http,
    refused,
    text_of,
)
from tests.support.sampling import some_of
from tests.support.serve_process import Host, Served
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(180)
TOOLING = Path(__file__).parents[2] / "support/apps/tooling.py"
OWN = [
    *("quote", "press", "total", "deliver", "deliver_in_thread", "spill"),
    *("get_result", "cancel_call"),
]
PRESSED = {"number": "7", "state": "pressed"}


@pytest.fixture
def host(host: Host) -> Host:
    host.cli.environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    (host.cli.folder / "shop.py").write_text(TOOLING.read_text())
    return host


@asynccontextmanager
async def on_http(served: Served, key: str | None = None) -> AsyncIterator[Wire]:
    async with served.client(key) as client:
        yield HttpWire(client)


@pytest.mark.parametrize("way", some_of(WAYS, "stdio-new", "http-old"))
async def test_a_function_is_a_tool_on_every_transport_of_both_eras(way: str, host: Host) -> None:
    host.settings["mcp_wait_seconds"] = 0.5
    async with Agents(host).connect(way, "--tools", "own") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == OWN
        item = tools["quote"].input_schema["properties"]["item"]
        assert item["description"] == "What it is called."
        assert await call(client, "quote", item="cider", pieces=2) == {
            "item": "cider",
            "price": 5.0,
        }
        assert await call(client, "total", numbers=[1, 2]) == {"result": 3}
        code, said = await refused(client, "quote", item="cider", pieces="many")
        assert (code, "pieces" in said) == ("invalid", True)
        assert await refused(client, "spill", what="milk") == (
            "tool-failed",
            "ValueError: spilt milk",
        )
        heard: list[tuple[float, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, message))

        pending = await client.call_tool("press", {"number": "7"}, progress_callback=hear)
        told = pending.structured_content
        assert isinstance(told, dict)
        assert text_of(pending).startswith("The call of press is running")
        assert told["next"] == f'get_result(call_id="{told["call_id"]}", wait=50)'
        words = "\n".join(message for _, message in heard if message)
        assert [part in words for part in ("done: crush", "half way", "pressing 7")] == [True] * 3
        assert (await call(client, "press", number="7"))["call_id"] == told["call_id"]
        assert (await refused(client, "press", number="7", weight=2.0))[0] == "key-conflict"
        (host.cli.folder / "gate").touch()
        assert await call(client, "get_result", call_id=told["call_id"]) == PRESSED
        assert await call(client, "press", number="7") == PRESSED, "the same call is the same job"
        assert (await refused(client, "get_result", call_id="0" * 32))[0] == "not-found"
    assert (host.cli.folder / "crushed").read_text() == "7\n"


async def test_clients_and_servers_die_and_nothing_is_lost(host: Host) -> None:
    """One client with tasks, one without that is gone after its call, two killed servers: one job,
    one result, seen by all."""
    host.settings["mcp_wait_seconds"] = 0.2
    crushed = host.cli.folder / "crushed"
    served = host.serve()
    async with on_http(served) as wire:
        task = await begin(wire, "press", number="7")
        assert task["status"] == "working"
        await until(crushed.exists, "the tool to begin")
        served.kill()
    served = host.serve()
    async with over_http(served) as client:
        handle = await call(client, "press", number="7")
        served.kill()
    assert task["taskId"] == f"call.{handle['call_id']}"
    served = host.serve()
    async with on_http(served) as wire:
        assert (await wire.ask("tasks/get", taskId=task["taskId"]))["result"]["status"] == "working"
        (host.cli.folder / "gate").touch()
        done = await ended(wire, task["taskId"])
    assert done["result"]["structuredContent"] == PRESSED
    async with over_http(served, "old") as client:
        assert await call(client, "get_result", call_id=handle["call_id"]) == PRESSED
        assert await call(client, "press", number="7") == PRESSED
    async with served.client() as http:
        seen = (await http.get(f"/v1/calls/{handle['call_id']}")).json()
        assert (seen["tool"], seen["state"], seen["result"]) == ("press", "completed", PRESSED)
        assert len((await http.get("/v1/jobs?kind=press")).json()["jobs"]) == 1
    assert crushed.read_text() == "7\n", "its first step was done once"


async def test_cancel_ends_the_job(host: Host) -> None:
    host.settings["mcp_wait_seconds"] = 0.2
    served = host.serve("--no-workers")
    async with on_http(served) as wire:
        task = await begin(wire, "press", number="7")
        await wire.ask("tasks/cancel", taskId=task["taskId"])
        over = await ended(wire, task["taskId"])
        assert (over["status"], "result" in over) == ("cancelled", False)
        again = await begin(wire, "press", number="7")
        assert again["taskId"] != task["taskId"], "what was cancelled can be called again"
    async with over_http(served) as client:
        waiting = await call(client, "total", numbers=[1])
        assert (await refused(client, "cancel_call", call_id=waiting["call_id"]))[0] == "cancelled"
        assert (await refused(client, "get_result", call_id=waiting["call_id"]))[0] == "cancelled"


async def test_programs_call_the_same_tools(host: Host) -> None:
    served = host.serve()
    async with served.client() as http:
        listed = (await http.get("/v1/tools")).json()["tools"]
        assert [tool["name"] for tool in listed] == OWN[:6]
        assert listed[0]["result"]["properties"]["price"]["description"] == "In euros."
        assert (await http.get("/v1/tools/quote")).json() == listed[0]
        done = await http.post("/v1/tools/quote?wait=60", json={"item": "cider"})
        assert (done.status_code, done.json()["result"]["price"]) == (200, 2.5)
        once = {"Idempotency-Key": "a"}
        calls = [
            (await http.post("/v1/tools/total", json={"numbers": [1]}, headers=once)).json()["id"]
            for _ in range(2)
        ]
        assert calls[0] == calls[1]
        wrong = await http.post("/v1/tools/total", json={"numbers": "x"})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid")
        absent = await http.post("/v1/tools/absent", json={})
        assert (absent.status_code, absent.json()["code"]) == (404, "tool-not-found")
        failed = (await http.post("/v1/tools/spill?wait=60", json={"what": "milk"})).json()
        assert (failed["state"], failed["error"]) == ("failed", "ValueError: spilt milk")
        begun = await http.post("/v1/tools/press", json={"number": "8"})
        assert begun.status_code == 202
        ended_call = (await http.post(f"{begun.headers['location']}/cancel")).json()
        assert ended_call["state"] in ("running", "cancelled")
    config = ["--app", "shop:app", "--config", host.config()]
    ran = await asyncio.to_thread(
        host.cli, "call", "total", '{"numbers": [4, 5]}', "--wait", "--json", *config
    )
    assert (ran.code, ran.json["result"]) == (0, 9)
    bad = await asyncio.to_thread(
        host.cli, "call", "spill", '{"what": "tea"}', "--wait", *config, code=1
    )
    assert "failed: ValueError: spilt tea" in bad.out
    names = await asyncio.to_thread(host.cli, "call", *config)
    assert names.out.startswith("quote(item, pieces?, size?)  Price an item.")


async def test_a_key_for_tools_may_do_nothing_else(host: Host) -> None:
    def key(*arguments: str) -> str:
        done = host.cli("keys", "create", "agent", *arguments, "--json")
        return str(done.json["secret"])

    mine, whole = key("--tools", "quote, press"), key()
    reader = key("--scope", "read")
    listed = host.cli("keys", "list").out
    assert "press, quote" in listed
    served = host.serve(require_key=True)
    async with served.client(whole) as http:
        other = (await http.post("/v1/tools/total", json={"numbers": [1]})).json()["id"]
    async with served.client(mine) as http:
        tools = (await http.get("/v1/tools")).json()["tools"]
        assert [tool["name"] for tool in tools] == ["quote", "press"]
        quoted = await http.post("/v1/tools/quote?wait=60", json={"item": "a"})
        assert quoted.json()["result"]["price"] == 2.5
        assert (await http.get(f"/v1/calls/{quoted.json()['id']}")).status_code == 200
        for path in (f"/v1/calls/{other}", "/v1/tools/total"):
            assert (await http.get(path)).status_code == 404, path
        assert (await http.post("/v1/tools/total", json={"numbers": [1]})).status_code == 404
        for path in ("/v1/jobs", f"/v1/jobs/{other}", "/v1/lanes", "/v1/documents", "/v1/events"):
            told = await http.get(path)
            assert (told.status_code, told.json()["code"]) == (403, "forbidden"), path
        made = await http.post("/v1/jobs", json={"kind": "total", "payload": {"numbers": [1]}})
        assert made.status_code == 403
    async with over_http(served, key=mine) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "quote",
            "press",
            "get_result",
            "cancel_call",
        ]
        assert (await refused(client, "total", numbers=[1]))[0] == "forbidden"
        assert (await refused(client, "create_task", question="How?"))[0] == "forbidden"
        assert (await refused(client, "get_result", call_id=other))[0] == "not-found"
        assert await call(client, "quote", item="b") == {"item": "b", "price": 2.5}
        with pytest.raises(Exception, match="may only call tools"):
            await client.list_resources()
    async with on_http(served, mine) as wire:
        gone = await wire.ask("tasks/get", taskId=f"call.{other}")
        assert gone["error"]["message"] == "there is no such task"
    async with over_http(served, key=reader) as client:
        assert await call(client, "quote", item="c") == {"item": "c", "price": 2.5}
        assert (await refused(client, "total", numbers=[1]))[0] == "forbidden"


def test_names_of_built_in_tools_are_taken(host: Host) -> None:
    (host.cli.folder / "asking.py").write_text(
        "from penstock import Penstock\n\napp = Penstock()\n\n\n"
        '@app.tool\ndef ask(question: str) -> str:\n    """Ask."""\n    return question\n'
    )
    refusal = host.cli("serve", "asking:app", "--port", "0", "--config", host.config(), code=2)
    assert "'ask' has the name of a built-in one" in refusal.err
    config: Any = host.cli("mcp", "asking:app", "--tools", "own", "--print-config").json
    assert config["mcpServers"]["penstock"]["args"][-2:] == ["--tools", "own"]
    wrong = host.cli("mcp", "asking:app", "--tools", "own,all", code=2)
    assert "there is no 'all'" in wrong.err
