"""MCP with its jobs and documents in databases: the main tools, on every kind of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.support import BACKENDS
from tests.support.answers import DOCUMENTS, QUESTION
from tests.support.answers_config import NAMES
from tests.support.mcp_clients import HttpWire, begin, call, ended, over_http
from tests.support.research import ResearchSite
from tests.support.research_config import PATIENT, settings
from tests.support.serve_process import Host

pytestmark = pytest.mark.timeout(120)
APART = [("postgres", "postgres"), ("redis", "postgres")]


@pytest.fixture(params=APART, ids=" and ".join)
def host(
    request: pytest.FixtureRequest, tmp_path: Path, host: Host, library_site: ResearchSite
) -> Host:
    queue, store = request.param
    host.cli.environment["PENSTOCK_QUEUE"] = BACKENDS[queue].url(tmp_path)
    host.others |= settings(library_site) | PATIENT
    if queue != store:
        host.others["store"] = BACKENDS[store].url(tmp_path)
    host.others["blobs"] = str(tmp_path / "blobs")
    return host


async def test_the_main_tools_work_the_same_with_databases(host: Host) -> None:
    served = host.serve()
    async with over_http(served) as client, served.client() as plain:
        made = await call(client, "create_task", question="How do wheels turn?", key="mine")
        again = await call(client, "create_task", question="How do wheels turn?", key="mine")
        assert again == made
        about = {"task_id": made["task_id"]}
        queued = await call(client, "queue_searches", **about, queries=["wheels", "mills"])
        assert queued["queued"] == 2
        told = await call(client, "get_status", **about)
        while told["status"] == "running":
            since = told["version"]
            told = await call(client, "get_status", **about, wait=50, since=since)
            assert told["version"] > since or told["status"] != "running"
        assert (told["status"], told["progress"], len(told["results"])) == ("completed", "2/2", 3)
        for name in NAMES:
            stored = await call(client, "ingest", text=DOCUMENTS[name], title=name, wait=50)
            assert stored["state"] == "completed"
        found = await call(client, "search_documents", query="overshot wheel", limit=1)
        assert found["passages"][0]["text"] == DOCUMENTS["wheel"]
        answer = await call(client, "ask", question=QUESTION)
        assert (answer["state"], answer["mode"]) == ("completed", "extractive")
        wire = HttpWire(plain)
        task = await begin(wire, "ingest", text="The sluice lets water in.", wait=50)
        assert (await ended(wire, task["taskId"]))["status"] == "completed"
        asked = await begin(wire, "ask", question=QUESTION)
        done = await ended(wire, asked["taskId"])
        assert done["result"]["structuredContent"]["text"] == answer["text"]
        other = await call(client, "create_task", question="What else?")
        stopped = await call(client, "stop_task", task_id=other["task_id"])
        assert stopped["status"] == "paused"
        resources = (await client.list_resources()).resources
        assert {one.name for one in resources} == {made["task_id"], other["task_id"]}
