"""Streams of changes: in order, resumable, with an end that comes once."""

import asyncio
import base64
import json
from collections import Counter

import httpx2 as httpx
import pytest

from tests.support.raw_http import Wire, request
from tests.support.serve_process import Event, Host, events, upload
from tests.support.waiting import PATIENCE, until

TEXT = "The penstock carries water to the turbine."


async def stream(client: httpx.AsyncClient, path: str, last: str | None = None) -> list[Event]:
    """All events of a stream that ends."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        return [one async for one in events(response)]


async def test_a_document_is_told_from_its_acceptance_to_its_end(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        await client.post("/v1/documents", json={"text": TEXT, "id": "a"})
        told = await stream(client, "/v1/documents/a/events")
        assert [one.name for one in told].count("done") == 1
        assert told[-1].name == "done"
        assert told[-1].data["document"]["state"] == "completed"
        changes = [one for one in told if one.name == "change"]
        assert [one.data["version"] for one in changes] == list(range(1, len(changes) + 1))
        assert [one.id for one in changes] == [str(one.data["version"]) for one in changes]
        whats = [one.data["what"] for one in changes]
        assert whats.count("queued") == whats.count("completed") == 2
        assert whats[-1] == "completed"

        headers = {"Last-Event-ID": told[-1].id or ""}
        after = await client.get("/v1/documents/a/events", headers=headers)
        assert after.status_code == 204, "who has seen the end is not told it again"


async def test_who_disconnects_after_every_event_sees_each_in_order_and_the_end(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        await client.post("/v1/documents", json={"text": TEXT, "id": "a"})
        seen: list[Event] = []
        by_query = False
        while True:
            resume = {"last_event_id": seen[-1].id or ""} if seen and by_query else {}
            headers = {"Last-Event-ID": seen[-1].id or ""} if seen and not by_query else {}
            by_query = not by_query
            path = "/v1/documents/a/events"
            async with client.stream("GET", path, headers=headers, params=resume) as response:
                if response.status_code == 204:
                    break
                seen.append(await anext(events(response)))
        versions = [one.data["version"] for one in seen if one.name == "change"]
        assert versions == list(range(1, len(versions) + 1))
        assert [one.name for one in seen].count("done") == 1
        assert seen[-1].name == "done"


async def test_failure_and_deletion_end_a_stream_too(host: Host) -> None:
    host.embedder.fault = "dimension"
    served = host.serve()
    async with served.client() as client:
        await client.post("/v1/documents", json={"text": TEXT, "id": "bad"})
        told = await stream(client, "/v1/documents/bad/events")
        assert told[-1].data["document"]["state"] == "failed"
        assert [one.data["what"] for one in told if one.name == "change"][-1] == "failed"

        await client.post("/v1/lanes/embedder/pause")
        await client.post("/v1/documents", json={"text": TEXT, "id": "gone"})
        reading = asyncio.create_task(stream(client, "/v1/documents/gone/events"))
        await until(lambda: _open(client, 1), "the stream to be open")
        await client.delete("/v1/documents/gone")
        assert (await reading)[-1].data == {"deleted": True}


async def _open(client: httpx.AsyncClient, count: int) -> bool:
    text = (await client.get("/metrics")).text
    return f"penstock_http_streams {count}.0" in text


async def test_an_id_of_another_time_gives_a_snapshot_to_start_from(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        await client.put("/v1/index/a", json={"text": TEXT})
        await stream(client, "/v1/documents/a/events")  # until its job is settled, too
        for last in ("999", "nonsense", "1e9", "-1"):
            told = await stream(client, "/v1/documents/a/events", last)
            assert [one.name for one in told] == ["reset", "done"], last
            assert told[0].data["document"]["state"] == "completed"
        assert (await client.get("/v1/documents/nobody/events")).status_code == 404


async def test_a_stream_gives_a_sign_of_life_from_the_start(host: Host) -> None:
    served = host.serve("--no-workers", heartbeat_seconds=0.1)
    async with served.client() as client:
        await client.post("/v1/documents", json={"text": TEXT, "id": "a"})
        async with client.stream("GET", "/v1/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            assert response.headers["x-accel-buffering"] == "no"
            lines = response.aiter_lines()
            said = [await anext(lines) for _ in range(6)]
            assert said[0].startswith(":")
            assert said.count(": still here") >= 1


@pytest.mark.parametrize("again", ["same server", "another server"])
async def test_all_changes_of_a_tenant_in_one_stream(host: Host, again: str) -> None:
    served = host.serve()
    other = served if again == "same server" else host.serve("--no-workers")
    async with served.client() as client, other.client() as second:
        seen: list[Event] = []
        async with client.stream("GET", "/v1/events") as response:
            coming = events(response)
            await client.post("/v1/documents", files=upload(a=b"One.", b=b"Two."))
            seen.append(await anext(coming))
        # Come and go until every job of both is told to be completed.
        while sum(one.data.get("what") == "completed" for one in seen) < 4:
            headers = {"Last-Event-ID": seen[-1].id or ""}
            async with second.stream("GET", "/v1/events", headers=headers) as response:
                seen.append(await asyncio.wait_for(anext(events(response)), PATIENCE))
        assert {one.name for one in seen} == {"change"}
        for log in {one.data["log"] for one in seen}:
            versions = [one.data["version"] for one in seen if one.data["log"] == log]
            assert versions == list(range(1, len(versions) + 1))


async def test_an_old_id_of_a_tenant_gives_a_snapshot(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        await client.put("/v1/index/a", json={"text": TEXT})
        # One is of 1970, the other of a time beyond what a number of seconds can be.
        beyond = base64.urlsafe_b64encode(f'[1{"0" * 400}, "s1"]'.encode()).decode()
        for last in ("nonsense", "WzEuMCwgIjEiXQ==", beyond):
            headers = {"Last-Event-ID": last}
            async with client.stream("GET", "/v1/events", headers=headers) as response:
                first = await anext(events(response))
                assert first.name == "reset"
                assert [one["id"] for one in first.data["documents"]] == ["a"]


async def test_a_reader_that_does_not_read_hurts_nobody(host: Host) -> None:
    served = host.serve("--no-workers")
    name, port = served.url.removeprefix("http://").split(":")
    async with served.client() as client:
        slow = [await asyncio.open_connection(name, int(port)) for _ in range(20)]
        for _, writer in slow:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: _open(client, 20), "the streams to be open")
        async with client.stream("GET", "/v1/events") as response:
            coming = events(response)
            for n in range(30):
                body = {"kind": "add", "log": "noise", "payload": {"a": n}}
                await client.post("/v1/jobs", json=body)
                assert (await asyncio.wait_for(anext(coming), PATIENCE)).data["version"] == n + 1
        for _, writer in slow:
            writer.transport.abort()
        await until(lambda: _open(client, 0), "the streams to be closed")


async def test_streams_are_limited(host: Host) -> None:
    served = host.serve("--no-workers", max_streams=1)
    async with served.client() as client, client.stream("GET", "/v1/events") as first:
        assert first.status_code == 200
        await until(lambda: _open(client, 1), "the stream to be open")
        second = await client.get("/v1/events")
        assert (second.status_code, second.json()["code"]) == (503, "too-many-streams")


async def test_of_many_streams_at_once_no_more_are_opened_than_may_be(host: Host) -> None:
    served = host.serve("--no-workers", max_streams=10, head_seconds=120)
    wires = [await Wire.open(served.url) for _ in range(60)]
    async with served.client() as client:
        await client.post("/v1/documents", json={"text": TEXT, "id": "a"})
    for wire in wires:
        wire.writer.write(request("GET", "/v1/documents/a/events"))
    answers = await asyncio.gather(*(wire.head() for wire in wires))
    assert Counter(status for status, _ in answers) == {200: 10, 503: 50}
    for wire in wires:
        wire.close()


def test_events_are_one_line_of_json_each() -> None:
    from penstock.server.events import event

    text = event("change", {"a": "line\nbreak\r\ud800"}, "1").decode()
    assert text.count("\n") == 4
    assert json.loads(text.split("data: ")[1])["a"].startswith("line\nbreak\r")
