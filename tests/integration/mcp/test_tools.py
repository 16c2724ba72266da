"""Tools for agents, over each transport and to clients of each era."""

import asyncio
from typing import Any

import pytest
from mcp.client import Client

from tests.support.mcp_clients import ERAS, OPERATOR_TOOLS, WAYS, Agents, call, refused, text_of
from tests.support.serve_process import Host

SLUICE = "The sluice of the old mill is opened at noon by the miller's daughter."


@pytest.fixture
def agents(host: Host) -> Agents:
    return Agents(host)


@pytest.mark.parametrize("way", WAYS)
async def test_a_text_is_stored_found_and_cited(way: str, agents: Agents) -> None:
    agents.host.others |= OPERATOR_TOOLS
    async with agents.connect(way) as client:
        assert client.protocol_version == ERAS[way.partition("-")[2]]
        told = await call(client, "ingest", text=SLUICE, title="Mills", wait=50)
        assert (told["state"], told["searchable"], told["chunks"]) == ("completed", True, 1)
        found = await call(client, "search_documents", query="when is the sluice opened?")
        [passage] = found["passages"]
        assert passage["text"] == SLUICE
        assert passage["document"] == told["id"]
        assert (passage["collection"], passage["title"]) == ("default", "Mills")
        assert (passage["start"], passage["end"]) == (0, len(SLUICE))
        assert passage["untrusted"] is True
        assert "never instructions" in found["notice"]
        elsewhere = await call(client, "search_documents", query="sluice", collections=["other"])
        assert elsewhere["passages"] == []
        await _all_that_goes_wrong(client)
    if way.startswith("stdio"):
        assert "Traceback" not in agents.errors.read_text()


async def _all_that_goes_wrong(client: Client) -> None:
    """Each call is answered with a code, and a sentence that says what would be right."""
    wrong: list[tuple[str, dict[str, Any], str, str]] = [
        ("search_documents", {}, "invalid", "query: "),
        ("search_documents", {"query": 5}, "invalid", "query: "),
        ("search_documents", {"query": ["a"]}, "invalid", "query: "),
        ("search_documents", {"query": ""}, "invalid", "query: "),
        ("search_documents", {"query": "   "}, "invalid", "the question is empty"),
        ("search_documents", {"query": "a" * 10_001}, "invalid", "10000 characters"),
        ("search_documents", {"query": "a", "limit": 10**9}, "invalid", "limit: "),
        ("search_documents", {"query": "a", "cursor": "next"}, "invalid", "cursor: "),
        ("search_documents", {"query": "a", "collections": [{}]}, "invalid", "collections.0: "),
        ("search_documents", {"query": "a", "top_k": 3}, "invalid", "there are: query, limit"),
        ("search_documents", {"query": "a\x00b"}, "invalid", "NUL"),
        ("ingest", {}, "invalid", "either `url` or `text`"),
        ("ingest", {"url": "http://a.example", "text": "b"}, "invalid", "either `url` or `text`"),
        ("ingest", {"url": "http://127.0.0.1/"}, "invalid", "loopback"),
        ("ingest", {"url": "file:///etc/passwd"}, "invalid", "http"),
        ("ingest", {"text": "a", "wait": 301}, "invalid", "wait: "),
        ("redrive", {}, "invalid", "say which"),
        ("redrive", {"everything": True, "kind": "a"}, "invalid", "say which"),
        ("redrive", {"ids": ["x" * 65]}, "invalid", "ids.0: "),
        ("get_page", {"document": "a", "collection": "none"}, "not-found", "list_documents names"),
        ("search", {"query": "a"}, "not-found", "there is no tool 'search'; there are: "),
    ]
    for tool, arguments, code, said in wrong:
        assert said in (told := await refused(client, tool, **arguments))[1], told
        assert told[0] == code


async def test_what_tools_say_of_themselves(agents: Agents) -> None:
    async with agents.connect("http-new") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions is not None
        for name, tool in tools.items():
            assert name in client.instructions, f"{name} is not told of"
            assert tool.description is not None
            assert 100 < len(tool.description) < 1500, name
            assert "\n " not in tool.description, "it flows"
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is not None
            assert tool.title
            hints = tool.annotations
            assert hints is not None
            if not hints.read_only_hint:  # else the others mean nothing
                assert hints.destructive_hint is False
                assert hints.idempotent_hint is not None
        readers = {name for name, tool in tools.items() if tool.annotations.read_only_hint}  # type: ignore[union-attr]
        assert readers == {
            *("get_status", "get_page", "search_documents", "list_tasks"),
            *("list_documents", "list_collections", "get_answer"),
        }
        assert len(tools) == 13


async def test_documents_are_listed_and_read_by_id_wherever_they_are(agents: Agents) -> None:
    async with agents.connect("http-new") as client:
        assert (await call(client, "list_documents"))["documents"] == []
        assert (await call(client, "list_collections"))["collections"] == []
        for collection in ("mills", "notes"):
            text = f"{SLUICE} In {collection}."
            await call(
                client, "ingest", text=text, title=collection, collection=collection, wait=50
            )
        listed = await call(client, "list_documents", limit=1)
        assert [one["collection"] for one in listed["documents"]] == ["notes"]
        rest = await call(client, "list_documents", cursor=listed["cursor"])
        [mills] = rest["documents"]
        assert (mills["collection"], mills["title"], mills["searchable"]) == (
            "mills",
            "mills",
            True,
        )
        assert rest["cursor"] is None
        told = await call(client, "list_collections")
        assert (told["collections"], told["total"]) == (["mills", "notes"], 2)
        page = await call(client, "get_page", document=mills["id"])
        assert (page["collection"], page["text"]) == ("mills", f"{SLUICE} In mills.")
        code, said = await refused(client, "get_page", document="no-such-document")
        assert (code, said) == (
            "not-found",
            "no document 'no-such-document'; list_documents names those there are",
        )


async def test_failed_jobs_are_listed_cut_and_tried_again(agents: Agents) -> None:
    cli = agents.host.cli
    agents.host.others |= OPERATOR_TOOLS
    for number in range(5):
        await asyncio.to_thread(cli.enqueue, "fail", {"message": f"number {number}"})
    async with agents.connect("http-new", "--no-workers") as client:
        await asyncio.to_thread(cli, "worker", "shop:app", "--drain")
        seen: list[str] = []
        cursor: str | None = None
        while True:
            told = await call(client, "list_dead_letters", limit=2, cursor=cursor)
            seen += [one["id"] for one in told["dead_letters"]]
            cursor = told["cursor"]
            if cursor is None:
                break
            assert len(told["dead_letters"]) == 2
        assert len(seen) == len(set(seen)) == 5
        [newest, *_] = told["dead_letters"]
        assert (newest["kind"], newest["attempts"]) == ("fail", 2)
        assert newest["error"]["type"] == "ValueError"
        assert "number" in newest["error"]["message"]
        assert "payload" not in newest
        assert (await call(client, "redrive", ids=seen[:2]))["count"] == 2
        assert (await call(client, "redrive", kind="other.*"))["count"] == 0
        assert (await call(client, "redrive", everything=True))["count"] == 3


async def test_lanes_are_shown_page_by_page(agents: Agents) -> None:
    agents.host.others |= OPERATOR_TOOLS
    async with agents.connect("http-new", "--no-workers") as client:
        for lane in ("openalex", "crossref", "arxiv"):
            await asyncio.to_thread(agents.host.cli, "lanes", "pause", lane)
        first = await call(client, "lane_status", limit=2)
        assert [lane["name"] for lane in first["lanes"]] == ["arxiv", "crossref"]
        rest = await call(client, "lane_status", cursor=first["cursor"])
        assert [lane["name"] for lane in rest["lanes"]] == ["openalex"]
        assert rest["cursor"] is None
        assert rest["lanes"][0]["blocked_why"] == "paused"


async def test_passages_are_cut_with_a_cursor_and_none_is_missing(agents: Agents) -> None:
    words = "The turbine turns by night and by day, and nobody has ever seen it stop. " * 30
    async with agents.connect("http-new") as client:
        texts = [f"Turbine {number}. {words}" for number in range(12)]
        await asyncio.gather(*(call(client, "ingest", text=text, wait=50) for text in texts))
        seen: list[tuple[str, int]] = []
        cursor: str | None = None
        calls = 0
        while True:
            result = await client.call_tool(
                "search_documents", {"query": "turbine", "limit": 30, "cursor": cursor}
            )
            told = result.structured_content
            assert isinstance(told, dict)
            assert len(str(told)) < 40_000
            seen += [(one["document"], one["start"]) for one in told["passages"]]
            calls, cursor = calls + 1, told["cursor"]
            if cursor is None:
                break
            assert f'call again with cursor="{cursor}"' in text_of(result)
        assert calls > 1
        assert len(seen) == len(set(seen)), "no passage twice"
        assert len({document for document, _ in seen}) == 12, "and none left out"
