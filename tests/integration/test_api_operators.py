"""The API for those who look after a queue. In this process: the wire is tested elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from penstock import JobContext, Penstock
from penstock.model.access import EVERYTHING, KeyScope, hash_of, new_key
from penstock.model.server import ServerConfig
from penstock.server.api import build
from penstock.server.draining import Draining

READ, WRITE = KeyScope.READ, KeyScope.WRITE


class Site:
    """An app, its API, and clients with keys."""

    def __init__(self, app: Penstock) -> None:
        self.app = app
        self._api = build(app, ServerConfig(), Draining())

    async def client(self, tenant: str = "default", *scopes: KeyScope) -> httpx.AsyncClient:
        key, secret = new_key("test", tenant=tenant, scopes=scopes or EVERYTHING)
        await self.app.access.add_key(key, hash_of(secret.reveal()))
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self._api),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {secret.reveal()}"},
        )

    async def work(self) -> None:
        """Until nothing is left to do."""
        async with self.app.running():
            await self.app.drain(timeout=30)


@asynccontextmanager
async def site_in(folder: Path, **settings: Any) -> AsyncIterator[Site]:
    app = Penstock(f"sqlite:///{folder}/jobs.db", durable=False, max_retries=0, **settings)
    _ = app.access

    @app.job("add")
    async def add(ctx: JobContext, a: int = 0, b: int = 0) -> int:
        return a + b

    @app.job("fail")
    async def fail(ctx: JobContext, why: str = "broken") -> None:
        raise ValueError(why)

    @app.job("called", lane="openalex")
    async def called(ctx: JobContext) -> None:
        return None

    async with app:
        yield Site(app)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def test_an_overview_is_the_tenants_own_and_the_rest_is_for_admins(site: Site) -> None:
    await site.app.enqueue("add", tenant="a")
    await site.app.enqueue("fail", tenant="b")
    await site.work()
    await site.app.enqueue("nobody.knows", tenant="b")
    await site.app.steer_lane("openalex", "pause")

    async with await site.client("a", READ) as reader:
        seen = (await reader.get("/v1/overview")).json()
    assert (seen["tenant"], seen["states"]["completed"]) == ("a", 1)
    assert [kind["kind"] for kind in seen["kinds"]] == ["add"]
    assert seen["oldest_queued_seconds"] is None
    assert seen["attention"] is seen["processes"] is seen["lanes"] is None

    async with await site.client("b") as admin:
        seen = (await admin.get("/v1/overview")).json()
    assert seen["states"] == {
        "queued": 1,
        "running": 0,
        "completed": 0,
        "failed": 1,
        "cancelled": 0,
    }
    assert 0 <= seen["oldest_queued_seconds"] < 60
    assert (seen["processes"], seen["unhandled_kinds"]) == ([], ["nobody.knows"])
    assert [lane["name"] for lane in seen["lanes"]] == ["openalex"]
    whats = [(one["what"], one["subject"]) for one in seen["attention"]]
    assert whats == [
        ("kind without a worker", "nobody.knows"),
        ("dead letters", "fail: ValueError"),
        ("paused", "openalex"),
    ]


async def test_one_look_serves_all_who_ask_at_the_same_time(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    counts = site.app.queue.counts

    async def counted(tenant: str | None = None) -> Any:
        nonlocal looks
        looks += 1
        return await counts(tenant)

    monkeypatch.setattr(site.app.queue, "counts", counted)
    async with await site.client() as client:
        for _ in range(5):
            assert (await client.get("/v1/overview")).status_code == 200
    assert looks <= 4, "of the tenant and of all, each once or, on a slow machine, twice"


async def test_dead_letters_are_grouped_for_their_tenant(site: Site) -> None:
    for n in range(3):
        await site.app.enqueue("fail", {"why": f"broken {n}"})
    await site.app.enqueue("fail", tenant="other")
    await site.work()
    async with await site.client() as client:
        (group,) = (await client.get("/v1/dead-letters/groups")).json()["groups"]
        newest = (await client.get(f"/v1/jobs/{group['newest_id']}")).json()
    assert (group["kind"], group["error_type"], group["count"]) == ("fail", "ValueError", 3)
    assert group["message"] == newest["error"]["message"]
    assert group["last_at"] == newest["finished_at"]
