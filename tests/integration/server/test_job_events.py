"""GET /v1/jobs/ID/events."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from penstock import JobContext
from penstock.model.access import KeyScope
from tests.support.app_api import Site, site_in
from tests.support.serve_process import Event, events
from tests.support.waiting import PATIENCE


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def told(client: httpx.AsyncClient, job_id: str, last: str | None = None) -> list[Event]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as response:
        assert response.status_code == 200
        return [one async for one in events(response)]


async def test_a_job_is_told_from_its_first_event_to_its_end(site: Site) -> None:
    @site.app.job("pages")
    async def pages(ctx: JobContext) -> str:
        await ctx.emit({"pages": 2})
        await ctx.step("read", lambda: "text")
        return "done"

    async with site.app.running():
        job = await site.app.enqueue("pages")
        await site.app.wait(job.id, timeout=PATIENCE)
    async with await site.client("default", KeyScope.READ) as client:
        whole = await told(client, job.id)
        assert [one.name for one in whole] == ["emitted", "step", "end"]
        assert [one.data["kind"] for one in whole] == [one.name for one in whole]
        assert whole[0].data["data"] == {"pages": 2}
        assert whole[1].data["data"]["name"] == "read"
        assert whole[2].data["data"]["result"] == "done"
        for n, one in enumerate(whole[:-1], 1):
            assert await told(client, job.id, one.id) == whole[n:]
        headers = {"Last-Event-ID": whole[-1].id or ""}
        path = f"/v1/jobs/{job.id}/events"
        assert (await client.get(path, headers=headers)).status_code == 204
    async with await site.client("others", KeyScope.READ) as client:
        assert (await client.get(path)).status_code == 404


async def test_a_job_is_rerun_from_a_step(site: Site) -> None:
    calls: list[str] = []

    @site.app.job("pages")
    async def pages(ctx: JobContext) -> None:
        await ctx.step("plan", lambda: calls.append("plan"))
        await ctx.step("read", lambda: calls.append("read"))

    scopes = (KeyScope.READ, KeyScope.WRITE)
    async with site.app.running(), await site.client("default", *scopes) as client:
        job = await site.app.enqueue("pages")
        await site.app.wait(job.id, timeout=PATIENCE)
        calls.clear()
        url = f"/v1/jobs/{job.id}/rerun"
        again = await client.post(url, json={"from_step": "read"})
        assert (again.status_code, again.json()["rerun_of"]) == (202, job.id)
        await site.app.wait(again.json()["id"], timeout=PATIENCE)
        assert calls == ["read"]
        refused = await client.post(url, json={"from_step": "write"})
        assert (refused.status_code, "'plan', 'read'" in refused.text) == (422, True)
        assert (await client.post(url, json={"step": "read"})).status_code == 422
        assert (await client.post(url)).status_code == 202
