"""A server that is told to stop: whoever waits is told, what runs is finished, nothing is lost."""

import asyncio
import signal

import httpx2 as httpx

from tests.support.serve_process import Event, Host, Served, events
from tests.support.waiting import until

STREAMS, JOBS, POLLS = 40, 20, 10


async def running(client: httpx.AsyncClient, count: int) -> bool:
    jobs = (await client.get("/v1/jobs?state=running&limit=1000")).json()["jobs"]
    return len(jobs) == count


async def polling(client: httpx.AsyncClient, count: int) -> bool:
    return f"penstock_http_long_polls {count}.0" in (await client.get("/metrics")).text


async def follow(served: Served, opened: asyncio.Event, seen: list[Event]) -> None:
    """Read a stream until the server ends it."""
    headers = {"Last-Event-ID": seen[-1].id or ""} if seen else {}
    async with (
        served.client() as client,
        client.stream("GET", "/v1/events", headers=headers) as response,
    ):
        assert response.status_code == 200
        opened.set()
        async for one in events(response):
            seen.append(one)  # noqa: PERF401 (others look at it meanwhile)


async def test_streams_and_jobs_survive_a_stop_and_a_start(host: Host) -> None:
    host.cli.environment["PENSTOCK_MAX_WORKERS"] = str(JOBS)
    (host.cli.folder / "shop.py").write_text(
        (host.cli.folder / "shop.py").read_text().replace("max_workers=4, ", "")
    )
    host.others["grace_seconds"] = 600.0  # it does not wait for its end
    served = host.serve()
    async with served.client() as client:
        body = {"kind": "hold", "log": "holding"}
        seen: list[list[Event]] = [[] for _ in range(STREAMS)]
        opened = [asyncio.Event() for _ in range(STREAMS)]
        async with asyncio.TaskGroup() as readers:
            for mine, is_open in zip(seen, opened, strict=True):
                readers.create_task(follow(served, is_open, mine))
            await asyncio.gather(*(one.wait() for one in opened))
            ids = [(await client.post("/v1/jobs", json=body)).json()["id"] for _ in range(JOBS)]
            polls = [
                readers.create_task(client.get(f"/v1/jobs/{one}?wait=60", timeout=60))
                for one in ids[:POLLS]
            ]
            await until(lambda: running(client, JOBS), "all jobs to run")
            await until(lambda: polling(client, POLLS), "all polls to wait")
            await until(lambda: min(map(len, seen)) >= JOBS, "all streams to tell of all jobs")
            served.send(signal.SIGTERM)
            answers = await asyncio.gather(*polls)
            assert {one.status_code for one in answers} == {200}
            assert {one.json()["state"] for one in answers} == {"running"}
            (host.cli.folder / "gate").touch()
        done = served.running.end()
        assert done.code == 0, done.err
        assert "Traceback" not in done.err, done.err
    for mine in seen:
        assert mine[-1].name == "bye"
        assert mine.pop().id is None
        assert [one.data["version"] for one in mine][:JOBS] == list(range(1, JOBS + 1))

    second = host.serve()
    for number in range(3):
        opened_again = asyncio.Event()
        reading = asyncio.create_task(follow(second, opened_again, seen[number]))

        def whole(mine: list[Event] = seen[number]) -> bool:
            return [one.data.get("what") for one in mine].count("completed") == JOBS

        await until(whole, "the end of every job")
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        versions = [one.data["version"] for one in seen[number]]
        assert versions == list(range(1, len(versions) + 1)), "each change once, in order"
    async with second.client() as client:
        for one in ids:
            job = (await client.get(f"/v1/jobs/{one}")).json()
            assert (job["state"], job["attempts"]) == ("completed", 1)


async def test_a_second_signal_ends_at_once(host: Host) -> None:
    host.others["grace_seconds"] = 600.0
    served = host.serve()
    async with served.client() as client:
        job_id = (await client.post("/v1/jobs", json={"kind": "hold"})).json()["id"]
        await until(lambda: running(client, 1), "the job to run")
        served.send(signal.SIGTERM)
        served.running.said('"stopping"')
        await asyncio.sleep(0.1)  # signals closer than 0.05 s are taken for one
        served.send(signal.SIGTERM)
        assert served.running.end().code == 130
    job = await asyncio.to_thread(host.cli.job, job_id)
    assert (job.state, job.attempts) == ("queued", 0)


async def test_a_stopping_server_is_not_ready_and_takes_nothing(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        assert (await client.get("/readyz")).status_code == 200
        await client.post("/v1/jobs", json={"kind": "hold"})
        await until(lambda: running(client, 1), "the job to run")
        # A connection that is in use when the signal comes is still served.
        async with client.stream("GET", "/v1/events") as response:
            coming = events(response)
            served.send(signal.SIGTERM)
            assert (await anext(coming)).name in ("change", "bye")
        try:
            late = await client.post("/v1/jobs", json={"kind": "add"})
            assert (late.status_code, late.json()["code"]) == (503, "stopping")
        except httpx.TransportError:
            pass  # it accepts no connections any more
        (host.cli.folder / "gate").touch()
        assert served.running.end().code == 0


async def test_an_upsert_under_way_is_answered_with_its_job(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        waiting = asyncio.create_task(client.put("/v1/index/a", json={"text": "Some text."}))

        async def accepted() -> bool:
            return bool((await client.get("/v1/documents")).json()["documents"])

        await until(accepted, "the document to be accepted")
        served.send(signal.SIGTERM)
        answer = await waiting
        assert (answer.status_code, answer.json()["document"]["state"]) == (202, "processing")
        assert served.running.end().code == 0
    second = host.serve()
    async with second.client() as client:
        job = (await client.get(f"/v1/jobs/{answer.json()['job']}?wait=60")).json()
        assert job["state"] == "completed"
