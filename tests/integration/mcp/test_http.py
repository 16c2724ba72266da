"""MCP over HTTP as it goes over the wire: who may call, and what nobody means well with."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.cli import Cli
from tests.support.mcp_clients import (
    ERAS,
    OPERATOR_TOOLS,
    answer_of,
    call,
    envelope,
    headers_for,
    over_http,
    refused,
)
from tests.support.serve_process import Host, Served, as_headers
from tests.support.waiting import PATIENCE, until

SEARCH: dict[str, Any] = {"name": "search_documents", "arguments": {"query": "mill"}}
RATE = 200
"""Requests a minute."""


async def post(
    client: httpx.AsyncClient, message: dict[str, Any], era: str = "new", **headers: str
) -> httpx.Response:
    return await client.post(
        "/mcp", json=message, headers={**headers_for(message, era), **as_headers(**headers)}
    )


@pytest.mark.parametrize("era", ERAS)
async def test_a_plain_request_is_answered(era: str, host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        response = await post(client, envelope("tools/call", era, **SEARCH), era)
    assert response.status_code == 200
    assert answer_of(response)["result"]["structuredContent"]["passages"] == []
    assert "mcp-session-id" not in response.headers, "no sessions, not for old clients either"
    assert response.headers["cache-control"].startswith("no-")


async def test_pages_of_other_sites_and_other_names_are_refused(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        for era in ERAS:
            message = envelope("tools/call", era, **SEARCH)
            for headers, status in (
                ({"Host": "evil.example"}, 421),
                ({"Origin": "https://evil.example"}, 403),
                ({"Origin": "null"}, 403),
                ({"X_Forwarded_For": "10.0.0.1"}, 401),
                ({"Origin": served.url}, 200),
            ):
                answer = await post(client, message, era, **headers)
                assert answer.status_code == status, (era, headers)
        for method in ("GET", "DELETE", "PUT"):
            answer = await client.request(method, "/mcp")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_key_is_asked_for_and_its_scopes_and_rate_are_kept(host: Host) -> None:
    keys = {scope: host.key(scope, scopes=scope) for scope in ("read", "write", "admin")}
    served = host.serve("--no-workers", require_key=True, requests_per_minute=RATE)
    message = envelope("tools/list")
    async with served.client() as client:
        for wrong in ({}, {"Authorization": "Bearer pk_wrong"}):
            answer = await post(client, message, **wrong)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "read": ("search_documents", {"query": "a"}),
        "write": ("ingest", {"text": "a"}),
    }
    for name, key in keys.items():
        async with over_http(served, key=key) as client:
            for scope, (tool, arguments) in calls.items():
                if scope == name:
                    await call(client, tool, **arguments)
                else:
                    code, said = await refused(client, tool, **arguments)
                    assert code == "forbidden"
                    assert said == f"this needs the scope {scope}; the key has {name}"
    async with served.client(keys["read"]) as client:
        answers = await asyncio.gather(*(post(client, message) for _ in range(50)))
        while {answer.status_code for answer in answers} == {200}:  # they came too slowly
            answers += await asyncio.gather(*(post(client, message) for _ in range(50)))
            assert len(answers) < 5 * RATE
    assert answers[0].headers["ratelimit-policy"] == f'"key";q={RATE};w=60'
    over = [answer for answer in answers if answer.status_code != 200]
    assert {(answer.status_code, answer.json()["code"]) for answer in over} == {
        (429, "rate-limited")
    }


async def test_a_tenant_reaches_only_its_own(host: Host) -> None:
    host.others |= OPERATOR_TOOLS
    ours, theirs = host.key("a", tenant="a"), host.key("b", tenant="b", scopes="read write admin")
    served = host.serve(require_key=True)
    async with over_http(served, key=ours) as mine, over_http(served, "old", key=theirs) as other:
        made = await call(mine, "ingest", text="The turbine's secret.", wait=50)
        assert made["state"] == "completed"
        assert (await call(other, "search_documents", query="turbine"))["passages"] == []
        async with served.client(ours) as client:
            job = (await client.post("/v1/jobs", json={"kind": "fail"})).json()["id"]
            await client.get(f"/v1/jobs/{job}?wait=50")
        assert (await call(other, "list_dead_letters"))["dead_letters"] == []
        assert (await call(other, "redrive", ids=[job]))["count"] == 0
        assert (await call(other, "redrive", everything=True))["count"] == 0
        assert len((await call(mine, "search_documents", query="turbine"))["passages"]) == 1
        [dead] = (await call(mine, "list_dead_letters"))["dead_letters"]
        assert dead["id"] == job


async def test_which_hosts_are_fetched_is_for_admins(host: Host) -> None:
    host.others |= OPERATOR_TOOLS
    reader, admin = host.key("reader", scopes="read"), host.key("admin", scopes="read admin")
    served = host.serve("--no-workers", require_key=True)
    async with served.client(admin) as client:
        await client.post("/v1/lanes/host:example.org/pause")
    async with over_http(served, key=reader) as client, over_http(served, key=admin) as other:
        for one, sees in ((client, False), (other, True)):
            lanes = (await call(one, "lane_status"))["lanes"]
            assert ("host:example.org" in [lane["name"] for lane in lanes]) is sees


async def test_with_a_full_queue_no_work_is_taken(host: Host) -> None:
    host.others |= OPERATOR_TOOLS
    served = host.serve("--no-workers", max_queued=1)
    async with served.client() as client:
        await client.post("/v1/jobs", json={"kind": "add"})
    async with over_http(served) as client:
        for tool, arguments in (("ingest", {"text": "a"}), ("redrive", {"everything": True})):
            code, said = await refused(client, tool, **arguments)
            assert code == "queue-full"
            assert "is the limit" in said
        await call(client, "search_documents", query="a")


NONSENSE: list[tuple[bytes, int]] = [
    (b"", 400),
    (b"{", 400),
    (b"null", 400),
    (b"[]", 400),
    (b"[" * 9_000, 400),
    (b"[" * 100_000, 422),  # over the bound of values: nothing parses it
    (b"\xff\xfe", 400),
    (b'{"jsonrpc": "2.0"}', 400),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}', 400),
    (b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}', 0),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', 400),
    (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', 0),
    (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "tools/list"}', 400),
    (b"x" * 3_000_000, 413),
]
"""0: anything but an error of the server."""


@pytest.mark.parametrize("era", ERAS)
async def test_nonsense_is_refused_and_breaks_nothing(era: str, host: Host) -> None:
    served = host.serve("--no-workers")
    good = envelope("tools/call", era, **SEARCH)
    headers = {**headers_for(good, era), "Content-Type": "application/json"}
    async with served.client() as client:
        for body, status in NONSENSE:
            answer = await client.post("/mcp", content=body, headers=headers)
            if status:
                assert answer.status_code == status, body[:60]
            assert answer.status_code < 500, body[:60]
        for changed in (
            {"Accept": "text/html"},
            {"Content-Type": "text/plain"},
            {"MCP-Protocol-Version": "1999-01-01"},
            {"MCP-Protocol-Version": "\x7f"},
            {"Mcp-Session-Id": "stolen"},
        ):
            answer = await client.post("/mcp", json=good, headers={**headers, **changed})
            assert answer.status_code < 500, changed
        for params in (
            {},
            {"name": 5},
            {"name": "search_documents", "arguments": []},
            {"name": "search_documents", "arguments": {"query": "a", "limit": 1e308}},
            {"name": "search_documents", "arguments": {"query": "\ud800"}},
            {"name": "search_documents", "arguments": {"query": json.loads("[" * 90 + "]" * 90)}},
            {"name": "\x00", "arguments": {"\x00": "\x00"}},
            {"name": "redrive", "arguments": {"ids": ["a"] * 100_000}},
        ):
            message = envelope("tools/call", era, **params)
            answer = await client.post(
                "/mcp", content=json.dumps(message).encode(), headers={**headers, "Mcp-Name": "x"}
            )
            assert answer.status_code < 500, params
        assert (await client.post("/mcp", json=good, headers=headers)).status_code == 200
    done = served.stop()
    assert "Traceback" not in done.err, done.err


async def sent(served: Served, head: bytes, body: bytes) -> bytes:
    """The first line that is answered to bytes as they are."""
    address, _, port = served.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(address, int(port))
    writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + body)
    line = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)
    writer.close()
    return line


async def test_blanks_around_a_header_are_not_part_of_it(host: Host) -> None:
    served = host.serve("--no-workers")
    message = envelope("tools/call", **SEARCH)
    body = json.dumps(message).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{name}:  {value} \t\r\n" for name, value in headers_for(message).items()]
    lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    assert b" 200 " in await sent(served, "".join(lines).encode(), body)


async def test_a_body_that_stops_coming_is_given_up(host: Host) -> None:
    served = host.serve("--no-workers", body_seconds=0.3)
    assert b" 408 " in await sent(served, b"Content-Length: 100\r\n", b"{")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_hangs_up_cancels_only_its_wait(era: str, host: Host) -> None:
    """The document that it waited for is worked on all the same, and nobody waits any more."""
    served = host.serve("--no-workers")
    arguments = {"text": "The turbine turns.", "wait": 50}
    message = envelope("tools/call", era, name="ingest", arguments=arguments)
    async with served.client() as client, served.client() as other:

        async def waiting(count: int) -> bool:
            return f"penstock_http_long_polls {count}.0" in (await other.get("/metrics")).text

        asking = asyncio.create_task(
            client.post("/mcp", json=message, headers=headers_for(message, era))
        )
        await until(lambda: waiting(1), "the wait to begin")
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: waiting(0), "the wait to end")
        await asyncio.to_thread(host.cli, "worker", "--config", host.config(), "--drain")
        [document] = (await other.get("/v1/documents")).json()["documents"]
        assert document["state"] == "completed"


def test_without_its_extra_the_server_says_what_to_install(cli: Cli) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None; "
        "from penstock.cli import main; sys.exit(main(['serve', '--port', '0', '--json']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=cli.folder,
        env=cli.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["address"]
        answer = httpx.post(f"{url}/mcp", json={}, timeout=PATIENCE)
        assert (answer.status_code, answer.json()["code"]) == (501, "not-installed")
        assert "penstock[mcp]" in answer.json()["detail"]
        assert httpx.get(f"{url}/readyz", timeout=PATIENCE).status_code == 200
        process.terminate()
        assert process.wait(PATIENCE) == 0
