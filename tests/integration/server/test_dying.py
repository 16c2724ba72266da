"""Servers that are killed, and readers that stop reading."""

import asyncio
import sqlite3
from contextlib import closing

import psutil

from tests.support.raw_http import Reply, Wire, first, request
from tests.support.serve_process import Host, Served
from tests.support.waiting import PATIENCE, until

KEYS = 60
STREAMS = 400
SLOW = 20


def requests(number: int) -> list[tuple[str, dict[str, object]]]:
    """What is made under one key, at each route."""
    return [
        ("/v1/jobs", {"kind": "add", "payload": {"a": number}}),
        ("/v1/documents", {"text": f"Number {number}."}),
        ("/v1/tasks", {"question": f"Number {number}?"}),
        ("/v1/answers?wait=0", {"question": f"Number {number}?"}),
    ]


async def a_few(served: Served, few: asyncio.Semaphore, number: int) -> list[Reply]:
    """So that the others are still to come when the first are done."""
    async with few:
        return await make(served, number)


async def make(served: Served, number: int) -> list[Reply]:
    wire = await Wire.open(served.url)
    try:
        key = {"Idempotency-Key": f"key-{number}"}
        return [await wire.ask("POST", path, body, key) for path, body in requests(number)]
    finally:
        wire.close()


def lease_is_over(host: Host) -> int:
    """As if the time of the leases had passed; how many were open."""
    with closing(sqlite3.connect(host.cli.path, timeout=20)) as connection, connection:
        return connection.execute(
            "UPDATE api_requests SET at = at - 1000 WHERE status IS NULL"
        ).rowcount


async def test_a_server_killed_half_way_makes_nothing_twice(host: Host) -> None:
    """The same requests at two servers, one of which is killed in the middle of them."""
    doomed, other = host.serve("--no-workers"), host.serve("--no-workers")
    few = asyncio.Semaphore(KEYS // 3)
    asked = [asyncio.create_task(a_few(doomed, few, number)) for number in range(KEYS)]
    raced = [asyncio.create_task(make(other, number)) for number in range(0, KEYS, 2)]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    doomed.kill()
    answers = await asyncio.gather(*asked, *raced, return_exceptions=True)
    assert any(isinstance(one, OSError) for one in answers), "it died before it was done"
    told = [one for some in answers if isinstance(some, list) for one in some]
    assert {one.status for one in told} <= {201, 202, 409}

    await asyncio.to_thread(lease_is_over, host)
    again = [await make(other, number) for number in range(KEYS)]
    assert {one.status for some in again for one in some} == {201, 202}
    async with other.client() as client:
        jobs = (await client.get("/v1/jobs?kind=add&limit=1000")).json()["jobs"]
        assert sorted(job["payload"]["a"] for job in jobs) == list(range(KEYS))
        documents = (await client.get("/v1/documents?limit=1000")).json()["documents"]
        assert len(documents) == KEYS
        parsed = (await client.get("/v1/jobs?kind=ingest.parse&limit=1000")).json()["jobs"]
        # A document that was accepted just before the death gets its job from the next worker.
        named = {job["payload"]["document"] for job in parsed}
        assert len(parsed) == len(named) <= KEYS
        tasks = (await client.get("/v1/tasks?limit=1000")).json()["tasks"]
        assert len(tasks) == len({one["question"] for one in tasks}) == KEYS
        answers = (await client.get("/v1/answers?limit=1000")).json()["answers"]
        assert len(answers) == len({one["question"] for one in answers}) == KEYS
    places = {one.headers["location"] for some in again for one in some}
    assert {one.headers["location"] for one in told if one.status != 409} <= places
    replayed = [await make(other, number) for number in range(5)]
    assert [one.body for some in replayed for one in some] == [
        one.body for some in again[:5] for one in some
    ]


async def test_readers_that_stop_reading_cost_little_and_are_dropped(host: Host) -> None:
    served = host.serve("--no-workers", stall_seconds=25, heartbeat_seconds=0.5)
    process = psutil.Process(served.running.process.pid)  # `env` has become it
    wire = await Wire.open(served.url)
    for number in range(100):  # a snapshot of these is what is sent, and not read
        body = {"text": "a", "id": f"{number}", "metadata": {"note": "x" * 4000}}
        assert (await wire.ask("POST", "/v1/documents", body)).status == 202
    slow = []
    for _ in range(SLOW):
        one = await Wire.open(served.url)
        one.writer.transport.pause_reading()  # type: ignore[attr-defined]
        one.writer.write(request("GET", "/v1/events?last_event_id=old"))
        slow.append(one)

    async def streams(count: int) -> bool:
        told = (await wire.ask("GET", "/metrics")).body
        return f"penstock_http_streams {float(count)}".encode() in told

    await until(lambda: streams(SLOW), "the streams to be open")
    before = process.memory_info().rss
    for number in range(200):
        body = {"kind": "other", "log": "y" * 400, "payload": {"a": number}}
        assert (await wire.ask("POST", "/v1/jobs", body)).status == 202
    grown = (process.memory_info().rss - before) / 1e6
    assert grown < 100, f"{grown:.0f} MB more"
    await until(lambda: streams(0), "those who do not read to be dropped")
    for one in slow:
        one.close()
    wire.close()


async def test_hundreds_of_streams_are_all_told(host: Host) -> None:
    served = host.serve("--no-workers", requests_per_minute=1_000_000, head_seconds=120)
    wires = [await Wire.open(served.url) for _ in range(STREAMS)]
    reading = [asyncio.create_task(first(wire.events("/v1/events"))) for wire in wires]
    wire = await Wire.open(served.url)

    async def all_open() -> bool:
        told = (await wire.ask("GET", "/metrics")).body
        return f"penstock_http_streams {float(STREAMS)}".encode() in told

    await until(all_open, "the streams to be open")
    await wire.ask("POST", "/v1/jobs", {"kind": "other", "log": "watched"})
    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*reading)
    assert {(name, data["version"]) for name, data in told} == {("change", 1)}
    for one in (*wires, wire):
        one.close()
