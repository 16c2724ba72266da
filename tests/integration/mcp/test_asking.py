"""Questions of tools to people: by way of a client that can ask, the dashboard, or HTTP."""

import asyncio
from typing import Any

import httpx2 as httpx
import pytest

from tests.integration.mcp.test_own_tools import host, on_http
from tests.support.mcp_clients import Wire, begin, call, ended, over_http
from tests.support.serve_process import PATIENCE, Host

__all__ = ["host"]
pytestmark = pytest.mark.timeout(180)


async def asked(wire: Wire, task_id: str) -> dict[str, Any]:
    """A task once it asks its client."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task: dict[str, Any] = (await wire.ask("tasks/get", taskId=task_id))["result"]
            if task["status"] != "working":
                return task
            await asyncio.sleep(0.1)


async def question_of(http: httpx.AsyncClient, call_id: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            seen = (await http.get(f"/v1/calls/{call_id}")).json()
            if seen["question"] is not None:
                return dict(seen["question"])
            await asyncio.sleep(0.1)


async def test_whoever_can_asks_the_person(host: Host) -> None:
    host.settings["mcp_wait_seconds"] = 0.2
    served = host.serve()
    async with on_http(served) as wire:
        task = await begin(wire, "deliver", number="7")
        waiting = await asked(wire, task["taskId"])
        assert (waiting["status"], waiting["statusMessage"]) == (
            "input_required",
            "When to deliver 7?",
        )
        ((key, request),) = waiting["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        fields = request["params"]["requestedSchema"]["properties"]
        assert fields["day"] == {
            "description": "The day.",
            "enum": ["monday", "sunday"],
            "type": "string",
        }
        given: dict[str, Any] = {"action": "accept", "content": {"day": "sunday", "boxes": 3}}
        served.kill()  # the question is the job's, not the server's
    served = host.serve()
    async with on_http(served) as wire:
        refused = {"action": "accept", "content": {"day": "never", "boxes": 3}}
        wrong = await wire.ask("tasks/update", taskId=task["taskId"], inputResponses={key: refused})
        assert "day is one of: monday, sunday" in wrong["error"]["message"]
        for _ in range(2):
            await wire.ask("tasks/update", taskId=task["taskId"], inputResponses={key: given})
        done = await ended(wire, task["taskId"])
        assert done["result"]["structuredContent"] == {"result": "3 on sunday"}


async def test_clients_that_cannot_ask_say_where_to_answer(host: Host) -> None:
    host.settings["mcp_wait_seconds"] = 0.2
    served = host.serve()
    async with served.client() as http:
        async with over_http(served) as client:
            pending = await call(client, "deliver_in_thread", number="8")
            question = await question_of(http, pending["call_id"])
            assert question["message"] == "When to deliver 8?"
            told = await client.call_tool("get_result", {"call_id": pending["call_id"]})
            assert f"at /jobs/{pending['call_id']}" in str(told.content)
            path = f"/v1/calls/{pending['call_id']}/answer"
            for content, why in {
                '{"boxes": 3}': "day is missing",
                '{"day": "monday", "boxes": "3"}': "boxes is to be a whole number",
                '{"day": "monday", "boxes": 30}': "boxes is out of bounds",
                '{"day": "monday", "boxes": 3, "x": 1}': "there is no field x",
            }.items():
                body = f'{{"question": "{question["id"]}", "content": {content}}}'
                json = {"Content-Type": "application/json"}
                bad = await http.post(path, content=body, headers=json)
                assert (bad.status_code, why in bad.json()["detail"]) == (422, True), bad.text
            both = {"question": question["id"], "content": {"boxes": 3}, "decline": True}
            assert (await http.post(path, json=both)).status_code == 422
            sent = await http.post(path, json={"question": question["id"], "decline": True})
            assert (sent.status_code, sent.json()) == (202, {"stored": True})
            waited = await http.get(f"/v1/calls/{pending['call_id']}?wait=60")
            assert waited.json()["result"] == "not at all"
            late = await http.post(path, json={"question": question["id"], "decline": True})
            assert "not any more" in late.json()["detail"]
        again = {"Idempotency-Key": "nine"}
        path = "/v1/tools/deliver?wait=0.1"
        begun = await http.post(path, json={"number": "9"}, headers=again)
        call_id = begun.json()["id"]
        question = await question_of(http, call_id)
        longer = "/v1/tools/deliver?wait=0.2"  # how long to wait is no part of the request
        waited = await http.post(longer, json={"number": "9"}, headers=again)
        assert (waited.json()["id"], waited.json()["question"]) == (call_id, question)
        page = await http.get(f"/jobs/{call_id}")
        assert "When to deliver 9?" in page.text
        assert 'name="answer.boxes"' in page.text
        assert "<option>true</option><option selected>false</option>" in page.text
        form = {"question": question["id"], "answer.day": "monday", "answer.boxes": "2"}
        answered = await http.post(
            f"/jobs/{call_id}/answer", data=form, headers={"Origin": served.url}
        )
        assert answered.status_code == 303, answered.text
        done = (await http.get(f"/v1/calls/{call_id}?wait=60")).json()
        assert done["result"] == "2 on monday"
