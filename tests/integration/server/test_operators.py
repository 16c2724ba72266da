"""The API for those who look after a queue. In this process: the wire is tested elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.errors import StoreUnavailable
from penstock.model.access import Action, KeyScope
from penstock.server import queue_cache as looks_of
from tests.support.app_api import Site, site_in

READ, WRITE = KeyScope.READ, KeyScope.WRITE


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def test_an_overview_is_the_tenants_own_and_the_rest_is_for_admins(site: Site) -> None:
    await site.app.enqueue("add", tenant="a")
    await site.app.enqueue("fail", tenant="b")
    await site.work()
    await site.app.enqueue("nobody.knows", tenant="b")
    await site.app.control_lane("openalex", "pause")

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
    monkeypatch.setattr(looks_of, "LOOK_SECONDS", 600.0)
    async with await site.client() as client:
        for _ in range(5):
            assert (await client.get("/v1/overview")).status_code == 200
    assert looks <= 2, "of the tenant and of all"


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


async def test_many_are_cancelled_and_why_not_is_said_of_the_others(site: Site) -> None:
    done = await site.app.enqueue("add")
    await site.work()
    low = [await site.app.enqueue("add", priority="low") for _ in range(3)]
    high = await site.app.enqueue("add", priority="high")
    foreign = await site.app.enqueue("add", tenant="other")
    async with await site.client() as client:

        async def cancel(**which: Any) -> Any:
            return await client.post("/v1/jobs/cancel", json=which)

        named = [low[0].id, done.id, foreign.id, "nobody", low[0].id]
        assert (await cancel(ids=named)).json() == {
            "count": 1,
            "ids": [low[0].id],
            "refused": [
                {"id": done.id, "why": "it is already completed"},
                {"id": foreign.id, "why": "there is no such job"},
                {"id": "nobody", "why": "there is no such job"},
            ],
        }
        wrong = (await cancel(ids=[high.id], priority="low")).json()
        assert wrong["refused"] == [
            {"id": high.id, "why": "it does not match the rest of the filter"}
        ]
        left = (await cancel(priority="low")).json()
        assert (left["count"], left["refused"]) == (2, [])
        assert (await cancel()).status_code == 422, "nothing is not everything"
        assert (await cancel(all=True, kind="add")).status_code == 422
        assert (await cancel(all=True)).json()["count"] == 1
    assert (await site.app.get(foreign.id)).state == "queued"


async def test_a_redrive_says_what_it_left_and_keeps_the_history(site: Site) -> None:
    dead = [await site.app.enqueue("fail") for _ in range(2)]
    stopped = await site.app.enqueue("fail", log="paper")
    done = await site.app.enqueue("add")
    await site.work()
    await site.app.stop_log("paper")
    async with await site.client() as client:
        ids = [dead[0].id, stopped.id, done.id]
        told = (await client.post("/v1/dead-letters/redrive", json={"ids": ids})).json()
        assert (told["count"], told["ids"]) == (1, [dead[0].id])
        assert told["refused"] == [
            {"id": stopped.id, "why": "its log paper is stopped; reopen it first"},
            {"id": done.id, "why": "it is completed, not a dead letter"},
        ]
        again = (await client.get(f"/v1/jobs/{dead[0].id}")).json()
        assert [one["outcome"] for one in again["history"]] == ["failed", "redriven"]
        which = {"kind": "fail", "error_type": "ValueError"}
        told = (await client.post("/v1/dead-letters/discard", json=which)).json()
    assert (told["count"], told["refused"]) == (2, [])


async def test_rerun_of_a_job_is_a_new_one(site: Site) -> None:
    old = await site.app.enqueue("add", {"a": 1, "b": 2}, key="sum", priority="high", log="t")
    foreign = await site.app.enqueue("add", tenant="other")
    await site.work()
    async with await site.client() as client:
        post = f"/v1/jobs/{old.id}/rerun"
        answer = await client.post(post, headers={"Idempotency-Key": "once"})
        assert answer.status_code == 202
        new = answer.json()
        assert answer.headers["location"] == f"/v1/jobs/{new['id']}"
        assert (new["kind"], new["payload"], new["priority"]) == ("add", {"a": 1, "b": 2}, "high")
        assert (new["rerun_of"], new["parent_id"], new["key"], new["log"]) == (
            old.id,
            None,
            None,
            None,
        )
        twice = await client.post(post, headers={"Idempotency-Key": "once"})
        assert twice.json()["id"] == new["id"]
        assert (await client.post(f"/v1/jobs/{foreign.id}/rerun")).status_code == 404
    await site.work()
    assert (await site.app.get(new["id"])).result == 3
    assert (await site.app.get(old.id)).state == "completed"


async def test_a_job_of_a_kind_that_is_not_known_here_keeps_its_lane(site: Site) -> None:
    old = await site.app.enqueue("called")
    await site.work()
    elsewhere = Penstock(site.app.config.queue, durable=False)
    async with elsewhere:
        new = await elsewhere.rerun(old.id)
    assert (new.lane, new.timeout, new.max_retries) == ("openalex", 60.0, 0)
    unknown = await site.app.enqueue("nobody.knows", {"n": 1})
    again = await site.app.rerun(unknown)
    assert (again.lane, again.timeout, again.payload) == (None, None, {"n": 1})


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("ingest.parse", "retry the document"),
        ("research.search", "resume the task"),
        ("answers.plan", "ask the question again"),
    ],
)
async def test_jobs_of_the_library_are_not_rerun_by_hand(
    site: Site, kind: str, instead: str
) -> None:
    job = await site.app.enqueue(kind)
    async with await site.client() as client:
        answer = await client.post(f"/v1/jobs/{job.id}/rerun")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert instead in answer.json()["detail"]


async def test_limits_of_a_lane_are_changed_by_admins(site: Site) -> None:
    async with await site.client("default", READ, WRITE) as other:
        denied = await other.patch("/v1/lanes/openalex", json={"max_parallel": 9})
        assert denied.status_code == 403
    async with await site.client() as admin:

        async def patch(name: str, **limits: Any) -> Any:
            return await admin.patch(f"/v1/lanes/{name}", json=limits)

        lane = (await patch("openalex", max_parallel=5)).json()
        assert (lane["max_parallel"], lane["overridden"]) == (5, True)
        lane = (await patch("openalex", requests_per_day=100)).json()
        assert (lane["max_parallel"], lane["per_day"]) == (5, 100), "what was given stays"
        lane = (await patch("openalex", min_interval_seconds=0.01)).json()
        assert lane["spacing"] == pytest.approx(0.102), "the configured rate goes on to bind"
        lane = (await patch("openalex", requests_per_interval=20)).json()
        assert lane["spacing"] == pytest.approx(0.051)
        assert (await admin.get("/v1/lanes")).json()["lanes"] == [lane]
        nothing = dict.fromkeys(lane["limits"])
        lane = (await patch("openalex", **nothing)).json()
        assert (lane["max_parallel"], lane["per_day"], lane["overridden"]) == (2, None, False)

        assert (await patch("nobody", max_parallel=5)).status_code == 404
        assert (await patch("openalex")).status_code == 422
        assert (await patch("openalex", max_parallel=0)).status_code == 422
        lonely = await patch("arxiv", requests_per_interval=5)
        assert "go together" in lonely.json()["detail"]


async def test_what_callers_do_is_recorded_however_it_ends(site: Site) -> None:
    secret = {"why": "pk_secret"}
    dead = await site.app.enqueue("fail", secret)
    await site.work()
    job = await site.app.enqueue("add", {"a": 1})
    async with await site.client("default") as admin:
        await admin.post(f"/v1/jobs/{job.id}/cancel")
        await admin.post("/v1/jobs/someone@example.org/cancel")
        ids = {"ids": [dead.id, job.id]}
        await admin.post("/v1/dead-letters/redrive", json=ids)
        await admin.post("/v1/jobs/cancel", json={"kind": "fail"})
        again = (await admin.post(f"/v1/jobs/{job.id}/rerun")).json()["id"]
        await admin.post("/v1/lanes/openalex/pause")
        await admin.post("/v1/lanes/openalex/resume")
        await admin.patch("/v1/lanes/openalex", json={"max_parallel": 3})
        await admin.post("/v1/lanes/nobody/pause")

        page = (await admin.get("/v1/actions")).json()
        newest = (await admin.get("/v1/actions", params={"limit": 2})).json()
        older = (await admin.get("/v1/actions", params={"before": newest["next"]})).json()
        none = (await admin.get("/v1/actions", params={"tenant": "other"})).json()

    told = page["actions"]
    assert [(one["action"], one["subject"], one["outcome"]) for one in told] == [
        ("lane.pause", "?", "failed"),
        ("lane.limit", "openalex", "done"),
        ("lane.resume", "openalex", "done"),
        ("lane.pause", "openalex", "done"),
        ("job.rerun", job.id, "done"),
        ("jobs.cancel", "jobs", "done"),
        ("jobs.redrive", "jobs", "partial"),
        ("job.cancel", "?", "failed"),
        ("job.cancel", job.id, "done"),
    ]
    details = [one["detail"] for one in told]
    assert details[0] == {"status": 404, "code": "not-found"}
    assert details[1] == {"limits": {"max_parallel": 3}}
    assert details[4] == {"new": again}
    assert details[5] == {"which": {"kind": "fail"}, "count": 1, "ids": [dead.id], "refused": 0}
    assert details[6] == {"which": {"ids": 2}, "count": 1, "ids": [dead.id], "refused": 1}
    assert {(one["tenant"], one["key_name"]) for one in told} == {("default", "test")}
    assert "pk_" not in str(page)
    assert "@" not in str(page)
    assert newest["actions"] + older["actions"] == told
    assert (none["actions"], page["next"]) == ([], None)

    async with await site.client("default", READ, WRITE) as other:
        assert (await other.get("/v1/actions")).status_code == 403


async def test_where_nothing_can_be_recorded_nothing_is_done(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await site.app.enqueue("add")
    async with await site.client() as client:

        async def away(action: Action) -> None:
            raise StoreUnavailable("the disk is full")

        monkeypatch.setattr(type(site.app.keys.store), "record", staticmethod(away))
        answer = await client.post(f"/v1/jobs/{job.id}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
    assert (await site.app.get(job.id)).state == "queued"


async def test_history_is_kept_once(site: Site) -> None:
    async with site.listening():
        keeping = [task for task in asyncio.all_tasks() if task.get_name() == "penstock-history"]
        assert len(keeping) == 1


async def test_a_forecast_is_of_the_tenants_own_jobs(site: Site) -> None:
    await site.app.enqueue_many("add", [{"a": n, "b": 1} for n in range(30)], tenant="a")
    await site.app.enqueue("add", {"a": 1, "b": 1}, tenant="b")
    await site.app.queue.configure(["openalex", "host:secret.example"])
    async with await site.client("a", READ) as reader:
        seen = (await reader.get("/v1/forecast")).json()
        assert (seen["jobs"], seen["stays"], seen["workers"], seen["done_at"]) == (30, 30, 0, None)
        (line,) = seen["lines"]
        assert (line["kind"], line["lane"], line["held_by"]) == ("add", None, "no worker process")
        assert seen["words"][0] == "30 jobs never, as things stand"

        asked: dict[str, str | int] = {"processes": 2, "workers": 5}
        asked["set"] = "openalex.max_parallel=4"
        seen = (await reader.get("/v1/forecast", params=asked)).json()
        assert (seen["stays"], seen["workers"]) == (0, 10)
        assert seen["done_at"] > seen["at"]
        assert seen["unknown_kinds"] == ["add"]

        for wrong, why in (
            ("openalex.colour=4", ""),
            ("nothing", ""),
            ("host:secret.example.max_parallel=9", "is not in use"),
        ):
            refused = await reader.get("/v1/forecast", params={"set": wrong})
            assert refused.status_code == 422, refused.text
            assert why in refused.text
    async with await site.client("b") as admin:
        asked = {"set": "host:secret.example.max_parallel=9"}
        assert (await admin.get("/v1/forecast", params=asked)).json()["jobs"] == 1
