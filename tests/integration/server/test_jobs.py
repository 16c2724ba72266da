"""The API of jobs, dead letters and lanes, asked over HTTP."""

import asyncio
import time

from tests.support.serve_process import Host
from tests.support.waiting import until


async def test_a_job_is_stored_run_and_read(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        new = {"kind": "add", "payload": {"a": 20, "b": 22}, "timeout": 77.5, "max_retries": 0}
        answer = await client.post("/v1/jobs", json=new)
        assert answer.status_code == 202
        where = answer.headers["location"]
        job = (await client.get(where, params={"wait": 60})).json()
        assert (job["state"], job["result"]) == ("completed", {"sum": 42})
        assert (job["timeout"], job["max_retries"]) == (77.5, 0)
        assert where == f"/v1/jobs/{job['id']}"


async def test_bursts_become_one_job(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:

        async def post(**body: object) -> dict[str, object]:
            answer = await client.post("/v1/jobs", json={"kind": "add", **body})
            return {"status": answer.status_code, **answer.json()}

        late = {"debounce": 3600, "debounce_key": "user:7"}
        first = await post(payload={"a": 1}, **late)
        again = await post(payload={"a": 2}, **late)
        assert (again["id"], again["payload"]) == (first["id"], {"a": 2})
        assert (again["debounce_key"], again["state"]) == ("user:7", "queued")
        one, other = await post(unique_for=3600), await post(unique_for=3600, unique_key="mine")
        assert (await post(unique_for=3600))["id"] == one["id"] != other["id"]
        assert (await post(debounce=5))["status"] == 422


async def test_a_long_poll_ends_with_success_failure_and_cancel(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:

        async def post(kind: str, **more: object) -> str:
            answer = await client.post("/v1/jobs", json={"kind": kind, **more})
            return str(answer.json()["id"])

        async def wait(job_id: str) -> str:
            return str((await client.get(f"/v1/jobs/{job_id}?wait=60")).json()["state"])

        done, bad, dropped = await post("add"), await post("fail"), await post("add", delay=3600)
        waits = [asyncio.create_task(wait(one)) for one in (done, bad, dropped)]
        assert await waits[0] == "completed"
        assert await waits[1] == "failed"
        assert not waits[2].done()
        await client.post(f"/v1/jobs/{dropped}/cancel")
        assert await waits[2] == "cancelled"


async def test_an_unknown_job_is_answered_at_once(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        begun = time.monotonic()
        answer = await client.get("/v1/jobs/nobody?wait=300")
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert answer.headers["content-type"] == "application/problem+json"
        assert time.monotonic() - begun < 50


async def test_nobody_waits_on_for_a_caller_that_hung_up(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        job_id = (await client.post("/v1/jobs", json={"kind": "add"})).json()["id"]

        async def polls(count: int) -> bool:
            return f"penstock_http_long_polls {count}.0" in (await client.get("/metrics")).text

        polling = [asyncio.create_task(client.get(f"/v1/jobs/{job_id}?wait=60")) for _ in range(5)]
        await until(lambda: polls(5), "the polls to wait")
        for one in polling:
            one.cancel()
        await asyncio.gather(*polling, return_exceptions=True)
        await until(lambda: polls(0), "the polls to end")
        assert (await client.get(f"/v1/jobs/{job_id}")).json()["state"] == "queued"


async def test_a_wait_that_ends_in_vain_tells_how_it_stands(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        job_id = (await client.post("/v1/jobs", json={"kind": "add"})).json()["id"]
        job = (await client.get(f"/v1/jobs/{job_id}?wait=0.2")).json()
        assert job["state"] == "queued"
        assert job["waiting_for"] == "a worker process that handles kind 'add'"


async def test_jobs_are_listed_by_filters_and_in_pages(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        for n in range(5):
            await client.post("/v1/jobs", json={"kind": "add", "payload": {"a": n}, "log": "sums"})
        await client.post("/v1/jobs", json={"kind": "mail.send"})

        async def page(**params: object) -> dict[str, object]:
            answer = await client.get("/v1/jobs", params=params)  # type: ignore[arg-type]
            assert answer.status_code == 200
            return dict(answer.json())

        seen: list[int] = []
        before: dict[str, object] = {}
        while True:
            one = await page(kind="add", state="queued", log="sums", limit=2, **before)
            seen += [job["payload"]["a"] for job in one["jobs"]]  # type: ignore[attr-defined]
            if one["next"] is None:
                break
            before = {"before": one["next"]}
        assert seen == [4, 3, 2, 1, 0]
        assert len((await page(kind="mail.*"))["jobs"]) == 1  # type: ignore[arg-type]
        assert (await page(state="failed"))["jobs"] == []

        newest = (await page(limit=1))["jobs"][0]  # type: ignore[index]
        later = {"enqueued_after": newest["enqueued_at"]}
        assert [job["id"] for job in (await page(**later))["jobs"]] == [newest["id"]]  # type: ignore[attr-defined]
        earlier = {"enqueued_before": newest["enqueued_at"], "priority": "medium"}
        assert len((await page(**earlier))["jobs"]) == 5  # type: ignore[arg-type]
        assert (await page(lane="api"))["jobs"] == []
        assert (await page(priority="low"))["jobs"] == []


async def test_a_page_of_large_jobs_is_cut_short(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        for n in range(90):
            large = {"kind": "other", "payload": {"n": n, "text": "x" * 200_000}}
            assert (await client.post("/v1/jobs", json=large)).status_code == 202
        seen: list[int] = []
        before: dict[str, str] = {}
        while True:
            answer = await client.get("/v1/jobs", params={"limit": 1000, **before})
            assert len(answer.content) < 16_000_000
            seen += [job["payload"]["n"] for job in answer.json()["jobs"]]
            if answer.json()["next"] is None:
                break
            before = {"before": answer.json()["next"]}
        assert seen == list(range(89, -1, -1))


async def test_dead_letters_are_redriven_and_discarded(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        made = [await client.post("/v1/jobs", json={"kind": "fail"}) for _ in range(2)]
        for one in made:
            await client.get(one.headers["location"], params={"wait": 60})
        letters = (await client.get("/v1/dead-letters")).json()["jobs"]
        assert [job["error"]["type"] for job in letters] == ["ValueError", "ValueError"]

        vague = await client.post("/v1/dead-letters/redrive", json={})
        assert vague.status_code == 422

        first, second = (one.json()["id"] for one in made)
        again = await client.post("/v1/dead-letters/redrive", json={"ids": [first]})
        assert again.json() == {"count": 1, "ids": [first], "refused": []}
        await client.get(f"/v1/jobs/{first}?wait=60")
        gone = await client.post("/v1/dead-letters/discard", json={"all": True})
        assert sorted(gone.json()["ids"]) == sorted([first, second])
        assert (await client.get(f"/v1/jobs/{second}")).status_code == 404


async def test_a_lane_is_paused_and_resumed(host: Host) -> None:
    host.others["lanes"] = {"openalex": {"max_parallel": 2}}
    served = host.serve("--no-workers")
    async with served.client() as client:
        paused = (await client.post("/v1/lanes/openalex/pause")).json()
        assert (paused["name"], paused["blocked_why"]) == ("openalex", "paused")
        names = [lane["name"] for lane in (await client.get("/v1/lanes")).json()["lanes"]]
        assert "openalex" in names
        resumed = (await client.post("/v1/lanes/openalex/resume")).json()
        assert resumed["blocked_why"] is None
        assert (await client.post("/v1/lanes/nobody/pause")).status_code == 404


WRONG = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"[]", "valid dictionary"),
    (b'{"kind": 1}', "kind"),
    (b'{"kind": "add", "payload": 1}', "payload"),
    (b'{"kind": "add", "colour": 1}', "body.colour: there is no such field; there are: kind, "),
    (b'{"kind": "add", "payload": {"a": NaN}}', "not JSON compliant"),
    (b'{"kind": "add", "delay": -1}', "delay"),
    (b'{"kind": "add", "delay": "1"}', "valid number"),
    (b'{"kind": "add", "priority": "urgent"}', "priority"),
    (b'{"kind": "ingest.parse"}', "made by adding documents"),
    (b'{"kind": "add", "log": "document:a/b"}', "those of documents"),
    (b'{"kind": "add", "payload": {"c": 1}}', "c"),
    (b'{"kind": "add", "payload": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", ""),
]


async def test_what_is_wrong_with_a_job_is_said(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        for body, said in WRONG:
            answer = await client.post(
                "/v1/jobs", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 422, answer.text
            assert said in answer.json()["detail"]
        assert (await client.get("/v1/jobs")).json()["jobs"] == []


async def test_a_queue_that_is_full_takes_nothing_more(host: Host) -> None:
    served = host.serve("--no-workers", max_queued=3)
    async with served.client() as client:
        answers = [await client.post("/v1/jobs", json={"kind": "add"}) for _ in range(5)]
        assert [one.status_code for one in answers] == [202, 202, 202, 503, 503]
        assert answers[-1].json()["code"] == "queue-full"
        assert int(answers[-1].headers["retry-after"]) > 0
        upload = await client.post("/v1/documents", json={"text": "One too many."})
        assert upload.status_code == 503
        assert len((await client.get("/v1/jobs")).json()["jobs"]) == 3

        job_id = answers[0].json()["id"]
        await client.post(f"/v1/jobs/{job_id}/cancel")

        async def room() -> bool:
            answer = await client.post("/v1/jobs", json={"kind": "add"})
            return answer.status_code == 202

        await until(room, "room for one more")
