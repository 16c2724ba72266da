"""Schedules over HTTP: a tenant's own, and those in the code."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock import JobContext
from penstock.model.access import KeyScope
from tests.support.app_api import Site, site_in


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:

        @site.app.job("tidy", every=3600)
        async def tidy(ctx: JobContext) -> None: ...

        yield site


async def test_schedules_are_made_changed_run_and_removed(site: Site) -> None:
    async with await site.client() as client:
        body = {"kind": "add", "payload": {"a": 1}, "every": 60}
        made = await client.put("/v1/schedules/nightly", json=body)
        assert (made.status_code, made.json()["schedule"]) == (200, "every 60 s")
        assert (await client.get("/v1/schedules/nightly")).json() == made.json()
        assert (await client.post("/v1/schedules/nightly/pause")).json()["paused"]
        assert not (await client.post("/v1/schedules/nightly/resume")).json()["paused"]
        key = {"Idempotency-Key": "once"}
        runs = [await client.post("/v1/schedules/nightly/run", headers=key) for _ in range(2)]
        assert [one.status_code for one in runs] == [202, 202]
        assert runs[0].json()["id"] == runs[1].json()["id"]
        assert runs[0].json()["payload"] == {"a": 1}
        await client.put("/v1/schedules/weekly", json={"kind": "add", "cron": "0 3 * * 1"})
        page = (await client.get("/v1/schedules", params={"limit": 1})).json()
        assert [one["name"] for one in page["schedules"]] == ["nightly", "tidy"]
        rest = (await client.get("/v1/schedules", params={"before": page["next"]})).json()
        assert [one["name"] for one in rest["schedules"]] == ["weekly"]
        assert rest["next"] is None
        assert (await client.delete("/v1/schedules/nightly")).status_code == 204
        assert (await client.get("/v1/schedules/nightly")).json()["code"] == "schedule-not-found"
        actions = (await client.get("/v1/actions")).json()["actions"]
    assert {one["action"] for one in actions} >= {"schedule.set", "schedule.run"}


async def test_a_tenant_has_its_own_and_changes_none_in_the_code(site: Site) -> None:
    async with await site.client("acme") as client:
        await client.put("/v1/schedules/nightly", json={"kind": "add", "every": 60})
        listed = (await client.get("/v1/schedules")).json()["schedules"]
        assert [one["name"] for one in listed] == ["nightly"]
    async with await site.client() as client:
        assert (await client.post("/v1/schedules/nightly/pause")).status_code == 404
        refused = await client.post("/v1/schedules/tidy/pause")
        assert (refused.status_code, refused.json()["code"]) == (409, "schedule-in-code")
        for body, why in (
            ({"kind": "add", "cron": "0 25 * * *"}, "Bad hour"),
            ({"kind": "add"}, "needs every= or cron="),
            ({"kind": "research.search", "every": 60}, "made by research tasks"),
        ):
            wrong = await client.put("/v1/schedules/x", json=body)
            assert (wrong.status_code, why in wrong.text) == (422, True), wrong.text
    async with await site.client("acme", KeyScope.WRITE) as writer:
        told = (await writer.post("/v1/schedules/nightly/pause")).json()
        assert told == {"name": "nightly", "paused": True}
