"""Streams of research tasks: in order, resumable, with an end that comes once."""

import asyncio

import pytest

from tests.integration.server.test_events import stream
from tests.support.research import ResearchSite
from tests.support.research_config import add, finished, new_task, settings
from tests.support.serve_process import Event, Host, events
from tests.support.waiting import PATIENCE


@pytest.fixture
def host(host: Host, library_site: ResearchSite) -> Host:
    host.others |= settings(library_site) | {"provider_seconds": 60.0, "page_seconds": 60.0}
    return host


async def test_a_task_is_told_from_its_first_search_to_its_end(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        task_id = await new_task(client, "wheels", "mills")
        path = f"/v1/tasks/{task_id}/events"
        told = await stream(client, path)
        assert [one.name for one in told].count("done") == 1
        assert told[-1].name == "done"
        done = told[-1].data["task"]
        assert (done["status"], done["progress"]) == ("completed", "2/2")
        assert done["results"] == (await finished(client, task_id))["results"]
        changes = [one for one in told if one.name == "change"]
        assert [one.data["version"] for one in changes] == list(range(1, len(changes) + 1))
        assert [one.id for one in changes] == [str(one.data["version"]) for one in changes]
        last = told[-1].id or ""
        headers = {"Last-Event-ID": last}
        assert (await client.get(path, headers=headers)).status_code == 204

        await add(client, task_id, "locks")
        more = await stream(client, path, last)
        assert more[0].data["version"] == len(changes) + 1, "who has seen an end is told what came"
        assert more[-1].data["task"]["progress"] == "3/3"


async def test_who_disconnects_after_every_event_sees_each_in_order_and_the_end(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        task_id = await new_task(client, "wheels")
        seen: list[Event] = []
        while True:
            headers = {"Last-Event-ID": seen[-1].id or ""} if seen else {}
            path = f"/v1/tasks/{task_id}/events"
            async with client.stream("GET", path, headers=headers) as response:
                if response.status_code == 204:
                    break
                seen.append(await anext(events(response)))
        versions = [one.data["version"] for one in seen if one.name == "change"]
        assert versions == list(range(1, len(versions) + 1))
        assert [one.name for one in seen].count("done") == 1
        assert seen[-1].name == "done"


async def test_a_paused_task_keeps_its_stream_and_goes_on_in_it(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        task_id = await new_task(client, "wheels")
        async with client.stream("GET", f"/v1/tasks/{task_id}/events") as response:
            coming = events(response)
            await client.post(f"/v1/tasks/{task_id}/stop", json={"mode": "graceful"})
            whats = []
            async with asyncio.timeout(PATIENCE):
                while "stopped" not in whats:
                    whats.append((await anext(coming)).data["what"])
                host.serve()
                await client.post(f"/v1/tasks/{task_id}/resume")
                names = [one.name async for one in coming]
            assert names[-1] == "done"
            assert names.count("done") == 1


async def test_an_id_of_another_time_gives_a_snapshot_to_start_from(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        task_id = await new_task(client, "wheels")
        await finished(client, task_id)
        for last in ("99999", "nonsense"):
            told = await stream(client, f"/v1/tasks/{task_id}/events", last)
            assert told[0].name == "reset"
            assert told[0].data["task"]["task_id"] == task_id
            assert told[-1].name == "done"


async def test_the_stream_of_a_tenant_tells_of_its_tasks_too(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client, client.stream("GET", "/v1/events") as response:
        coming = events(response)
        task_id = await new_task(client, "wheels")
        first = await asyncio.wait_for(anext(coming), PATIENCE)
        assert first.data["log"] == f"research:{task_id}"
