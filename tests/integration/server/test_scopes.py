"""What a key may do follows from its scopes, at every route and for every tool."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp_types import Tool

from penstock import JobContext
from penstock.model.access import KeyScope
from penstock.model.server import ServerConfig
from tests.support.app_api import Site, site_in
from tests.support.embedder import EmbedderServer
from tests.support.mcp_clients import over_http

READ, WRITE, ADMIN = KeyScope.READ, KeyScope.WRITE, KeyScope.ADMIN
SECRET = "the colour of the sluice is vermilion"
WORD = "vermilion"
BODIES: dict[str, dict[str, Any]] = {
    "/v1/jobs": {"kind": "keep", "payload": {"said": SECRET}, "key": "known"},
    "/v1/documents": {"text": "a"},
    "/v1/search": {"question": "What colour is the sluice?"},
    "/v1/tasks": {"question": "What colour?"},
    "/v1/answers": {"question": "What colour is the sluice?"},
    "/v1/jobs/cancel": {"kind": "nothing"},
    "/v1/jobs/{job_id}/signals": {"name": "go"},
    "/v1/dead-letters/redrive": {"kind": "nothing"},
    "/v1/dead-letters/discard": {"kind": "nothing"},
    "/v1/tasks/{task_id}/searches": {"queries": ["colour"]},
    "/v1/tasks/{task_id}/stop": {"mode": "immediate"},
    "/v1/index/{document_id}": {"text": "a"},
    "/v1/budgets/{payer}": {"tokens": 1000, "per": "day"},
    "/v1/schedules/{name}": {"kind": "keep", "payload": {"said": SECRET}, "every": 3600},
}
READS = {"/v1/search"}
"""Posts that change nothing."""
FOR_ALL = {"/healthz", "/readyz"}
FOR_ADMINS = {
    "/metrics",
    "/v1/periodic",
    "/v1/actions",
    "/v1/history",
}
CONTROLS = ("/v1/lanes/", "/v1/budgets/")
"""What an operator changes."""
ASKS = {"/v1/answers"}
"""Needs both."""


@pytest.fixture
async def site(tmp_path: Path, embedder: EmbedderServer) -> AsyncIterator[Site]:
    file, soon = embedder.config(tmp_path), ServerConfig(deadline_seconds=0.1)
    async with site_in(tmp_path, documents=True, config=soon, config_file=file) as site:

        @site.app.job("keep")
        async def keep(ctx: JobContext, said: str) -> str:
            return said

        @site.app.tool("openalex")
        def keep_again(said: str = "") -> str:
            """Keep something; by the name of a lane, which paths have, too."""
            return said

        yield site


async def stored(site: Site) -> dict[str, str]:
    """Something of every kind that holds the secret; ids by their names in paths."""
    job = await site.app.enqueue("keep", {"said": SECRET}, key="known")
    made = await site.app.enqueue("openalex", {"said": SECRET})
    async with site.app.running():
        document = await site.app.documents.add(SECRET, id="secret", title=SECRET)
        await site.app.documents.wait(document.ref.id, timeout=60)
        await site.app.wait(job.id, 60)
    await site.app.schedules.set("openalex", "keep", {"said": SECRET}, every=3600)
    task = await site.app.research.create(SECRET)
    answer = await site.app.answers.ask(SECRET)
    return {
        "{job_id}": job.id,
        "{call_id}": made.id,
        "{document_id}": "secret",
        "{task_id}": task.id,
        "{answer_id}": answer.id,
        "{name}": "openalex",
        "{payer}": "tenant:default",
    }


def needed(method: str, path: str) -> set[KeyScope]:
    if path in FOR_ALL:
        return set()
    if path in FOR_ADMINS or (path.startswith(CONTROLS) and method != "GET"):
        return {ADMIN}
    if path in ASKS and method == "POST":
        return {READ, WRITE}
    return {READ} if method == "GET" or path in READS else {WRITE}


async def test_each_route_needs_its_scopes_and_a_key_that_only_writes_reads_nothing(
    site: Site,
) -> None:
    ids = await stored(site)
    async with await site.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        assert WORD in (await client.get(f"/v1/jobs/{ids['{job_id}']}")).text
    calls = [
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if not path.endswith("/events") or method != "get"
    ]
    assert len(calls) > 35
    # What deletes comes last, or the others would find nothing.
    calls.sort(key=lambda call: call[0] == "DELETE")
    clients = {scope: await site.client("default", scope) for scope in KeyScope}
    for method, path in calls:
        for scope, client in clients.items():
            answer = await call(client, method, path, ids)
            refused = needed(method, path) - {scope}
            assert (answer.status_code == 403) == bool(refused), (scope, method, path, answer.text)
            if scope is not READ:
                assert WORD not in answer.text, (scope, method, path)
    for client in clients.values():
        await client.aclose()


async def call(
    client: httpx.AsyncClient, method: str, path: str, ids: dict[str, str]
) -> httpx.Response:
    url = path
    for name, known in ids.items():
        url = url.replace(name, known)
    query: dict[str, dict[str, Any]] = {
        "/v1/pages": {"document": "secret", "collection": "default"},
        "/v1/answers": {"wait": 0},
    }
    body = BODIES.get(path) if method in ("POST", "PUT") else {} if method == "PATCH" else None
    return await client.request(method, url, json=body, params=query.get(path))


async def test_a_key_that_only_writes_is_told_which_job_and_its_state(site: Site) -> None:
    job = await site.app.enqueue("keep", {"said": SECRET})
    async with await site.client("default", WRITE) as client:
        cancelled = await client.post(f"/v1/jobs/{job.id}/cancel")
        assert cancelled.json() == {"id": job.id, "state": "cancelled"}
        key = {"Idempotency-Key": "once"}
        again = [await client.post(f"/v1/jobs/{job.id}/rerun", headers=key) for _ in range(2)]
        assert again[0].json().keys() == {"id", "state"}
        assert again[0].json() == again[1].json()
        assert again[1].headers["idempotency-replayed"] == "true"
        assert again[0].headers["location"] == f"/v1/jobs/{again[0].json()['id']}"
    async with await site.client("default", WRITE, READ) as client:
        both = await client.post(f"/v1/jobs/{job.id}/rerun", headers=key)
        assert both.json()["payload"] == {"said": SECRET}


async def test_each_tool_needs_its_scopes(site: Site) -> None:
    keys = {scope: await site.secret("default", scope) for scope in (READ, WRITE)}
    arguments: dict[str, dict[str, Any]] = {
        "ask": {"question": "what?", "wait": 0},
        "create_task": {"question": "what?"},
        "queue_searches": {"task_id": "x", "queries": ["a"]},
        "ingest": {"text": "a"},
        "search_documents": {"query": "a"},
        "get_page": {"document": "x"},
        "redrive": {"everything": True},
        "get_answer": {"answer_id": "x"},
        "get_result": {"call_id": "x"},
        "cancel_call": {"call_id": "x"},
    }
    async with site.listening(require_key=True) as address:
        refused: dict[KeyScope, set[str]] = {}
        tools: list[Tool] = []
        for scope, key in keys.items():
            async with over_http(address, key=key) as client:
                tools = (await client.list_tools()).tools
                refused[scope] = set()
                for tool in tools:
                    named = arguments.get(tool.name, {})
                    if "task_id" in tool.input_schema.get("required", []):
                        named = {"task_id": "x", **named}
                    result = await client.call_tool(tool.name, named)
                    if result.is_error and "needs the scope" in str(result.content):
                        refused[scope].add(tool.name)
    reading = {one.name for one in tools if one.annotations and one.annotations.read_only_hint}
    assert refused[WRITE] == reading | {"ask", "openalex"}, "their answers are of what is stored"
    assert refused[READ] == {one.name for one in tools} - reading
