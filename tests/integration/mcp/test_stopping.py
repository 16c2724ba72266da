"""An MCP server that is told to stop while agents wait, and what old clients leave behind."""

import asyncio
import signal
import time
from typing import Any

import httpx2 as httpx
import pytest

from penstock import Penstock
from penstock.mcp.http import Endpoint
from penstock.mcp.server import PenstockMCP
from penstock.mcp.tool_view import McpServices
from penstock.mcp.waiting import Stopping
from penstock.model.access import EVERYTHING, Caller
from tests.support.cli import Cli
from tests.support.mcp_clients import ERAS, call, envelope, headers_for, over_http
from tests.support.serve_process import Host
from tests.support.waiting import until

WAITS = 20
SOON = 40.0
"""Less than the 50 s after which a wait is answered in any case."""


@pytest.mark.parametrize("era", ERAS)
async def test_waits_end_with_the_state_when_the_server_stops(era: str, host: Host) -> None:
    served = host.serve("--no-workers")
    async with over_http(served, era) as client, served.client() as plain:
        task = await call(client, "create_task", question="How do wheels turn?")
        status = {"task_id": task["task_id"], "wait": 300}
        text = {"text": "The turbine turns.", "wait": 300}
        waits = [
            asyncio.create_task(call(client, name, **arguments))
            for _ in range(WAITS // 2)
            for name, arguments in (("get_status", status), ("ingest", text))
        ]

        async def waiting() -> bool:
            return f"penstock_http_long_polls {WAITS}.0" in (await plain.get("/metrics")).text

        await until(waiting, "all to wait")
        begun = time.monotonic()
        served.send(signal.SIGTERM)
        told = await asyncio.gather(*waits)
        assert time.monotonic() - begun < SOON
        assert {one.get("status", one.get("state")) for one in told} == {"running", "processing"}
        message = envelope("tools/list", era)
        try:
            late = await plain.post("/mcp", json=message, headers=headers_for(message, era))
            assert (late.status_code, late.json()["code"]) == (503, "stopping")
        except httpx.TransportError:
            pass  # it accepts no connections any more
    done = served.running.end()
    assert done.code == 0, done.err
    assert "Traceback" not in done.err, done.err


async def test_old_clients_leave_nothing_behind(cli: Cli) -> None:
    """No session, no task: each of their requests is over when it is answered."""
    app = Penstock(cli.url, durable=False)
    app.use("research")
    service = McpServices(app, lambda request: Caller("default", EVERYTHING), Stopping())
    endpoint = Endpoint(PenstockMCP(service), 1_000_000)
    message = envelope("tools/call", "old", name="list_tasks", arguments={})
    headers = headers_for(message, "old")
    async with app, endpoint.running():
        transport = httpx.ASGITransport(app=endpoint.answer)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def ask() -> Any:
                return await client.post("/mcp", json=message, headers=headers)

            assert (await ask()).status_code == 200
            before = len(asyncio.all_tasks())
            for _ in range(10):
                answers = await asyncio.gather(*(ask() for _ in range(20)))
                assert {answer.status_code for answer in answers} == {200}
                assert not any("mcp-session-id" in answer.headers for answer in answers)
            await until(lambda: len(asyncio.all_tasks()) <= before, "what they asked to be over")
