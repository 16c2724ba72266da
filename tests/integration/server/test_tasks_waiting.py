"""Long polls of research tasks: every change wakes everybody, and nobody is kept waiting."""

import asyncio
import signal
import time
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.raw_http import Wire, request
from tests.support.research import ResearchSite
from tests.support.research_config import add, finished, new_task, settings
from tests.support.serve_process import Host, Served
from tests.support.waiting import PATIENCE, until

TASKS, CHANGES = 4, 15
LEFT, WAITS = 20, 50


@pytest.fixture
def host(host: Host, library_site: ResearchSite) -> Host:
    host.others |= settings(library_site) | {"provider_seconds": 60.0, "page_seconds": 60.0}
    return host


async def polling(client: httpx.AsyncClient, count: int) -> bool:
    return f"penstock_http_long_polls {count}.0" in (await client.get("/metrics")).text


async def test_two_clients_are_woken_by_each_of_many_changes(host: Host) -> None:
    """Each change is made once both have been told of the one before, and are waiting again or
    about to: the moment in which a wake-up could get lost."""
    served, other = host.serve("--no-workers"), host.serve("--no-workers")
    took: list[float] = []

    async def told(server: Served, task_id: str, seen: list[int]) -> None:
        async with server.client(timeout=300) as client:
            while True:
                path = f"/v1/tasks/{task_id}?wait=300&since={seen[-1]}"
                version = (await client.get(path)).json()["version"]
                assert version > seen[-1], "the poll ended with its time, and no news"
                seen.append(version)

    async def change(client: httpx.AsyncClient, task_id: str) -> None:
        readers: list[list[int]] = [[0], [0]]
        async with asyncio.TaskGroup() as group:
            reading = [
                group.create_task(told(server, task_id, seen))
                for server, seen in zip((served, other), readers, strict=True)
            ]
            for number in range(CHANGES):
                begun = time.monotonic()
                await add(client, task_id, f"query {number}")
                newest = (await client.get(f"/v1/tasks/{task_id}?limit=0")).json()["version"]

                def told_all(newest: int = newest) -> bool:
                    return all(seen[-1] >= newest for seen in readers)

                await until(told_all, f"news of change {number}")
                took.append(time.monotonic() - begun)
            for one in reading:
                one.cancel()
        assert all(len(seen) > CHANGES for seen in readers), "each was told of each"

    async with served.client() as client:
        tasks = [await new_task(client) for _ in range(TASKS)]
        await asyncio.gather(*(change(client, task_id) for task_id in tasks))
    assert len(took) == TASKS * CHANGES
    assert sorted(took)[len(took) // 2] < 20.0, "half of them were told by a wake-up, not by chance"


async def test_a_poll_is_answered_by_any_change_and_at_once_where_there_was_one(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        task_id = await new_task(client)

        async def woken_by(doing: Any) -> Any:
            waiting = asyncio.create_task(client.get(f"/v1/tasks/{task_id}?wait=300", timeout=300))
            await until(lambda: polling(client, 1), "the poll to wait")
            await doing
            return (await asyncio.wait_for(waiting, PATIENCE)).json()

        assert (await woken_by(add(client, task_id, "wheels")))["progress"] == "0/1"
        stop = client.post(f"/v1/tasks/{task_id}/stop", json={"mode": "graceful"})
        paused = await woken_by(stop)
        assert paused["status"] == "paused"
        resumed = await woken_by(client.post(f"/v1/tasks/{task_id}/resume"))
        assert resumed["status"] == "running"
        begun = time.monotonic()
        late = await client.get(f"/v1/tasks/{task_id}?wait=300&since={paused['version']}")
        assert late.json()["version"] > paused["version"]
        quiet = await client.get(f"/v1/tasks/{task_id}?wait=0.1&since={late.json()['version']}")
        assert quiet.json()["version"] == late.json()["version"]
        assert time.monotonic() - begun < PATIENCE
    working = host.serve()
    async with working.client() as client:
        done = await finished(client, task_id)
        begun = time.monotonic()
        again = await client.get(f"/v1/tasks/{task_id}?wait=300&since={done['version']}")
        # The job that was the last may be settled a moment after the task is finished.
        same = again.json() | {"version": done["version"]}
        assert same == done, "what is finished has no change to wait for"
        assert time.monotonic() - begun < PATIENCE


async def test_clients_that_hang_up_cancel_nothing(host: Host, library_site: ResearchSite) -> None:
    library_site.page_delay = 1.0
    served = host.serve()
    async with served.client() as client:
        task_id = await new_task(client)
        wires = [await Wire.open(served.url) for _ in range(LEFT)]
        for wire in wires:
            wire.writer.write(request("GET", f"/v1/tasks/{task_id}?wait=60&since=9999"))
        await until(lambda: polling(client, LEFT), "all polls to wait")
        await add(client, task_id, "wheels")
        for wire in wires:
            wire.close()
        await until(lambda: polling(client, 0), "all polls to be over")
        done = await finished(client, task_id)
        assert (done["status"], done["errors"]) == ("completed", [])
        jobs = (await client.get(f"/v1/jobs?log=research:{task_id}&limit=1000")).json()["jobs"]
        assert {job["state"] for job in jobs} <= {"completed", "running"}
        assert {job["attempts"] for job in jobs} == {1}


async def test_a_server_that_stops_answers_all_who_wait_with_the_task_as_it_is(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        task_id = await new_task(client, "wheels")
        version = (await client.get(f"/v1/tasks/{task_id}")).json()["version"]
        wires = [await Wire.open(served.url) for _ in range(WAITS)]
        for wire in wires:
            path = f"/v1/tasks/{task_id}?wait=300&since={version}"
            wire.writer.write(request("GET", path))
        await until(lambda: polling(client, WAITS), "all polls to wait")
        begun = time.monotonic()
        served.send(signal.SIGTERM)
        answers = await asyncio.gather(*(wire.answer() for wire in wires))
        assert time.monotonic() - begun < PATIENCE
        assert {one.status for one in answers} == {200}
        assert {(one.json["status"], one.json["version"]) for one in answers} == {
            ("running", version)
        }
        for wire in wires:
            wire.close()
    done = served.running.end()
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
