"""What no client library would send: heads without end, bodies that trickle, connections that say
nothing. Each is refused or given up, and nobody else is kept waiting."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from tests.support.raw_http import Wire, first, request
from tests.support.serve_process import Host, Served
from tests.support.waiting import PATIENCE, until

Dial = Callable[[Served], Awaitable[Wire]]

HEAD_SECONDS = 6
"""More than the machine stands still between a connection and what is sent over it at once."""
BARELY = b"GET /healthz HTTP/1.1\r\nHost: local"


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Opens connections, closed with the test."""
    wires: list[Wire] = []

    async def open_one(served: Served) -> Wire:
        wires.append(await Wire.open(served.url))
        return wires[-1]

    yield open_one
    for wire in wires:
        wire.close()


async def closed(wire: Wire) -> bytes:
    """What is still said before the server hangs up. Where it has not read all that was sent, it
    does so by a reset."""
    said = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE):
            while part := await wire.reader.read(65536):
                said += part
    return said


async def trickle(wire: Wire, data: bytes) -> None:
    """Send it over and over, a piece every now and then, until that is not possible any more."""
    try:
        while not wire.reader.at_eof():
            wire.writer.write(data)
            await wire.writer.drain()
            await asyncio.sleep(0.05)  # slowness is what is sent
    except OSError:
        pass


async def alive(dial: Dial, served: Served) -> None:
    wire = await dial(served)
    assert (await wire.ask("GET", "/healthz")).status == 200


@pytest.mark.parametrize("said", [b"", BARELY])
async def test_a_connection_without_request_is_closed(host: Host, dial: Dial, said: bytes) -> None:
    served = host.serve("--no-workers", head_seconds=HEAD_SECONDS)
    wires = [await dial(served) for _ in range(20)]
    for wire in wires:
        wire.writer.write(said)
    await alive(dial, served)
    for wire in wires:
        assert await closed(wire) == b""


@pytest.mark.parametrize("piece", [b"X-More: and more\r\n", b"a"])
async def test_a_head_that_trickles_is_given_up(host: Host, dial: Dial, piece: bytes) -> None:
    served = host.serve("--no-workers", head_seconds=HEAD_SECONDS)
    wire = await dial(served)
    wire.writer.write(BARELY)
    slowly = asyncio.create_task(trickle(wire, piece))
    assert await closed(wire) == b""
    await slowly


async def test_blank_lines_do_not_keep_a_connection_open(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers", head_seconds=HEAD_SECONDS)
    wire = await dial(served)
    assert (await wire.ask("GET", "/healthz")).status == 200
    slowly = asyncio.create_task(trickle(wire, b"\r\n"))
    assert await closed(wire) == b""
    await slowly


async def test_a_body_that_trickles_is_given_up(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers", body_seconds=0.5)
    for path in ("/v1/jobs", "/v1/search"):
        wire = await dial(served)
        head = request("POST", path, b"", {"Content-Length": "1000000"})
        wire.writer.write(head)
        slowly = asyncio.create_task(trickle(wire, b" "))
        async with asyncio.timeout(60):
            assert (await wire.answer()).status == 408
        wire.close()
        slowly.cancel()
        await asyncio.gather(slowly, return_exceptions=True)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: a\r\n" * 100_000,
        b"GET /" + b"a" * 200_000,
    ],
    ids=["line without end", "long line", "many lines", "address"],
)
async def test_a_head_that_is_too_large_is_refused(host: Host, dial: Dial, data: bytes) -> None:
    served = host.serve("--no-workers")
    said = await asyncio.to_thread(refusal, served, data)
    assert said.startswith(b"HTTP/1.1 431 ")
    assert b"content-type: application/problem+json\r\n" in said
    await alive(dial, served)


def refusal(served: Served, data: bytes) -> bytes:
    """What comes back. An event loop that is still sending when the server hangs up may see that
    before it has read what was said."""
    name, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((name, int(port)), timeout=PATIENCE) as caller:
        with suppress(ConnectionError):
            caller.sendall(data)
        return caller.recv(65536)


async def test_what_follows_a_body_has_a_limit_too(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers")
    wire = await dial(served)
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire.writer.write(head + b"0\r\nX: " + b"a" * 200_000)
    await closed(wire)
    await alive(dial, served)


async def test_what_could_be_read_in_two_ways_is_refused(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers")
    body = b'{"kind":"add"}'
    for headers in (
        "Content-Length: 14\r\nContent-Length: 2",
        "Content-Length: 14\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Content-Length: +14",
        "Content-Length: 14\r\nHost: evil.example",
        "Content-Length : 14",
        "Content-Length: 14\r\n folded",
    ):
        wire = await dial(served)
        head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        wire.writer.write(f"{head}{headers}\r\n\r\n".encode() + body)
        async with asyncio.timeout(60):
            status, told = await wire.head()
        assert (status, told["content-type"]) == (400, "application/problem+json"), headers
        wire.close()
    async with served.client() as client:
        assert (await client.get("/v1/jobs")).json()["jobs"] == []


async def test_old_chunked_and_pipelined_requests_are_served(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers")
    wire = await dial(served)
    wire.writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert b"200 OK" in await closed(wire)

    wire = await dial(served)
    head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    wire.writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    wire.writer.write(b'5\r\n{"kin\r\n9;name=value\r\nd":"add"}\r\n0\r\nTrailer: x\r\n\r\n')
    assert (await wire.answer()).status == 202

    wire.writer.write(f"{head}Content-Length: 14\r\nExpect: 100-continue\r\n\r\n".encode())
    assert (await wire.head())[0] == 100
    wire.writer.write(b'{"kind":"add"}')
    assert (await wire.answer()).status == 202

    wire.writer.write(request("GET", "/v1/jobs") + request("GET", "/healthz") * 20)
    assert len((await wire.answer()).json["jobs"]) == 2
    assert [(await wire.answer()).status for _ in range(20)] == [200] * 20


async def test_with_too_many_connections_the_idle_make_room(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers", max_connections=20)
    wires = [await dial(served) for _ in range(20)]
    made = await wires[0].ask("POST", "/v1/jobs", {"kind": "add"})
    polling = asyncio.create_task(
        wires[0].ask("GET", f"{made.headers['location']}?wait=60")  # it is not idle
    )
    await asyncio.sleep(0)
    more = [await dial(served) for _ in range(10)]
    for wire in more:
        assert (await wire.ask("GET", "/healthz")).status == 200
    for wire in wires[1:11]:
        told = await closed(wire)
        assert b" 503 " in told
        assert b"too-many-connections" in told
    async with served.client() as client:
        await client.post(f"{made.headers['location']}/cancel")
    assert (await polling).json["state"] == "cancelled"


async def test_thousands_of_idle_connections_keep_nobody_out(host: Host, dial: Dial) -> None:
    served = host.serve("--no-workers", max_connections=500, head_seconds=600)
    name, port = served.url.removeprefix("http://").split(":")
    crowd = [socket.create_connection((name, int(port))) for _ in range(2000)]
    begun = time.monotonic()
    await alive(dial, served)
    assert time.monotonic() - begun < PATIENCE
    for one in crowd:
        one.close()


async def test_a_stream_whose_key_is_revoked_ends(host: Host, dial: Dial) -> None:
    secret = host.key("leaked")
    listed = await asyncio.to_thread(host.cli, "keys", "list", "--json")
    admin = await asyncio.to_thread(host.key, "admin", scopes="admin")
    served = host.serve("--no-workers", require_key=True, heartbeat_seconds=0.2)
    wire = await dial(served)
    coming = wire.events("/v1/events", {"Authorization": f"Bearer {secret}"})
    reading = asyncio.create_task(first(coming))
    async with served.client(admin) as client:

        async def is_open() -> bool:
            return "penstock_http_streams 1.0" in (await client.get("/metrics")).text

        await until(is_open, "the stream to be open")
        await asyncio.to_thread(host.cli, "keys", "revoke", listed.json[0]["id"])
        async with asyncio.timeout(PATIENCE):
            name, data = await reading
        assert (name, data) == ("bye", {"why": "the API key is no longer valid"})
