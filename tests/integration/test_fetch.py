"""`ctx.fetch`: what others name is fetched, and nothing else is reached on the way."""

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpcore2
import httpx2
import pytest

from penstock import AddressRefused, Job, JobContext, JobState
from penstock.engine.guard import RESOLVERS, GuardedClient, GuardedNetwork, Resolver
from penstock.engine.web_address import parse_allow
from penstock.model.lane import LaneConfig
from tests.support.processes import Farm
from tests.support.server import Answer, CountingServer, redirect

SOON = 10.0
MOST = 100_000
FREE = LaneConfig(min_interval_seconds=0.0, max_parallel=20)
COUNTED = LaneConfig(
    min_interval_seconds=0.0, max_parallel=20, requests_per_day=100, parent="fetch"
)
PARENT = LaneConfig(min_interval_seconds=0.0, max_parallel=1, requests_per_day=100)
PUBLIC = "93.184.216.34"


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


class Desk:
    """Fetches in a job, from one server on loopback that is allowed."""

    def __init__(self, farm: Farm, server: CountingServer) -> None:
        self.farm = farm
        self.server = server

    async def fetch(
        self,
        url: str,
        *,
        most: int = MOST,
        timeout: float = SOON,
        lanes: Any = None,
        lane: str | None = "host:127.0.0.1",
    ) -> Job:
        """The job's result is what was fetched."""
        port = self.server.port
        app = self.farm.bare(
            lanes=lanes or {"fetch": FREE, "host:*": FREE},
            max_retries=0,
            fetch_allow=f"127.0.0.1:{port},localhost:{port}",
        )

        async def handler(ctx: JobContext) -> dict[str, Any]:
            async with ctx.fetch(url, most=most) as fetched:
                body = b"".join([part async for part in fetched.parts])
                return {
                    "url": fetched.url,
                    "mime": fetched.mime,
                    "charset": fetched.charset,
                    "name": fetched.name,
                    "size": len(body),
                    "text": body[:100].decode("latin-1"),
                }

        app.job("work", lane=lane, timeout=timeout)(handler)
        async with app.running():
            job = await app.enqueue("work")
            return await app.wait(job.id, timeout=2 * SOON)

    async def refusal(self, url: str, **options: Any) -> tuple[str, str]:
        job = await self.fetch(url, **options)
        assert job.state is JobState.FAILED, job
        assert job.error is not None
        return job.error.type, job.error.message

    def use_of(self, lane: str) -> int:
        (row,) = self.farm.query("SELECT used_today FROM lanes WHERE name = ?", lane)
        return int(row[0])


@pytest.fixture
def desk(farm: Farm, server: CountingServer) -> Desk:
    return Desk(farm, server)


async def test_document_comes_with_what_is_said_of_it(desk: Desk, server: CountingServer) -> None:
    server.answers["/a"] = Answer(
        headers={
            "content-type": "Text/HTML; charset=EUC-KR",
            "content-disposition": "attachment; filename*=UTF-8''%E6%B0%B4%2F%E9%96%80.html",
            "content-encoding": "gzip",
        },
        body=gzip.compress(b"<p>open</p>"),
    )
    done = await desk.fetch(server.url("/a?b=c#d"))
    assert done.result == {
        "url": server.url("/a?b=c"),
        "mime": "text/html",
        "charset": "euc-kr",
        "name": "門.html",
        "size": 11,
        "text": "<p>open</p>",
    }
    (hit,) = server.hits
    assert (hit.path, hit.query) == ("/a", "b=c")
    assert hit.headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b%20c.pdf", "b c.pdf"), ("/a/", "a"), ("/", "127.0.0.1")]
)
async def test_document_that_is_not_named_is_called_by_its_address(
    desk: Desk, server: CountingServer, path: str, name: str
) -> None:
    result = (await desk.fetch(server.url(path))).result
    assert (result["name"], result["mime"], result["charset"]) == (name, "", "")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://169.254.169.254/latest/meta-data/", "a link-local address"),
        ("http://[::1]/", "a loopback address"),
        ("http://[::ffff:169.254.169.254]/", "a link-local address"),
        ("http://127.0.0.1/", "a loopback address"),
        ("http://127.0.0.1:1/", "neither 80 nor 443"),
        ("http://2130706433/", "neither a name nor a plain IP address"),
        ("http://0x7f.1/", "neither a name nor a plain IP address"),
        ("http://localhost./", "a loopback address"),
        ("file:///etc/passwd", "only http and https"),
        ("http://me@example.org/", "a user name or password"),
    ],
)
async def test_redirect_to_what_is_not_public_is_not_followed(
    desk: Desk, server: CountingServer, target: str, why: str
) -> None:
    server.answers["/hop"] = redirect("/away")
    server.answers["/away"] = redirect(target, 307)
    kind, said = await desk.refusal(server.url("/hop"))
    assert kind == "AddressRefused"
    assert why in said
    assert [hit.path for hit in server.hits] == ["/hop", "/away"]


async def test_five_redirects_are_followed_and_no_more(desk: Desk, server: CountingServer) -> None:
    for n in range(7):
        server.answers[f"/{n}"] = redirect(f"/{n + 1}")
    server.answers["/7"] = Answer(body=b"there")
    assert (await desk.fetch(server.url("/2"))).result["text"] == "there"
    assert await desk.refusal(server.url("/1")) == (
        "FetchError",
        "127.0.0.1: more than 5 redirects",
    )


async def test_every_hop_has_a_permit_of_its_host_and_the_parent_has_one_slot(
    desk: Desk, server: CountingServer
) -> None:
    """The parent takes one at a time: a job that is in it already does not wait for itself."""
    there = server.url("/b", host="localhost")
    server.answers["/a"] = redirect(there)
    server.answers["/b"] = redirect(server.url("/c", host="localhost"))
    server.answers["/c"] = redirect(server.url("/d"))
    server.answers["/d"] = Answer(body=b"there")
    done = await desk.fetch(server.url("/a"), lanes={"fetch": PARENT, "host:*": COUNTED})
    assert done.result["text"] == "there"
    assert [hit.headers["host"].partition(":")[0] for hit in server.hits] == [
        *("127.0.0.1", "localhost"),
        *("localhost", "127.0.0.1"),
    ]
    assert desk.use_of("host:127.0.0.1") == 2
    assert desk.use_of("host:localhost") == 2
    assert desk.use_of("fetch") == 4


async def test_redirect_within_a_host_keeps_the_default_distance(
    desk: Desk, server: CountingServer
) -> None:
    server.answers["/a"] = redirect("/b")
    done = await desk.fetch(server.url("/a"), lanes={"fetch": FREE})
    assert done.state is JobState.COMPLETED
    assert done.releases == 0
    first, second = (hit.arrived for hit in server.hits)
    assert second - first >= 1.0


def packed(size: int) -> bytes:
    """Zeros, a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)]
    return b"".join(parts) + packer.flush()


EMPTY = b"\x00\x00\x00\xff\xff" * 2000
"""Blocks of a packed stream that unpack to nothing."""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(body=b"x" * (MOST + 1)), "DocumentTooLarge"),
        (Answer(body=b"x" * 1000, endless=True), "FetchError"),
        (
            Answer(body=packed(100_000_000), headers={"content-encoding": "gzip"}),
            "DocumentTooLarge",
        ),
        (
            Answer(
                body=EMPTY,
                headers={"content-encoding": "deflate"},
                endless=True,
            ),
            "FetchError",
        ),
        (Answer(headers={"content-encoding": "gzip, gzip"}), "FetchError"),
        (Answer(headers={"content-encoding": "br"}), "FetchError"),
        (Answer(headers={"content-encoding": "gzip"}, body=b"no gzip"), "FetchError"),
        (Answer(headers={"content-length": "99999999999"}), "DocumentTooLarge"),
        (Answer(headers={"x-long": "x" * 200_000}), "Unavailable"),
        (Answer(204), "FetchError"),
        (Answer(206), "FetchError"),
        (Answer(304), "FetchError"),
        (Answer(302), "FetchError"),
        (Answer(401), "FetchError"),
        (Answer(403), "FetchError"),
        (Answer(404), "FetchError"),
        (Answer(410), "FetchError"),
        (Answer(500), "Unavailable"),
        (Answer(reset=True), "Unavailable"),
    ],
    ids=str,
)
async def test_answers_that_bring_no_document_or_too_much_end_soon(
    desk: Desk, server: CountingServer, answer: Answer, kind: str
) -> None:
    server.answers["/"] = answer
    start = time.monotonic()
    found, said = await desk.refusal(server.url("/?token=canary"))
    assert found == kind, said
    assert "canary" not in said
    assert time.monotonic() - start <= SOON


@pytest.mark.parametrize(
    "answer", [Answer(hang=True), Answer(endless=True, body=b"x")], ids=["hangs", "trickles"]
)
async def test_server_that_takes_its_time_has_no_more_than_the_job(
    desk: Desk, server: CountingServer, answer: Answer
) -> None:
    server.answers["/"] = answer
    start = time.monotonic()
    kind, _ = await desk.refusal(server.url("/"), timeout=0.5)
    assert kind in ("Unavailable", "JobTimeout")
    assert 0.4 <= time.monotonic() - start <= 5.0


async def test_trouble_of_a_host_is_not_probed(desk: Desk, server: CountingServer) -> None:
    """A probe resolves names by itself, and would reach what the guard does not."""
    server.down()
    kind, _ = await desk.refusal(server.url("/"))
    assert kind == "Unavailable"
    assert desk.farm.query("SELECT name FROM lanes WHERE address IS NOT NULL") == []


async def test_cookies_are_not_kept_for_whoever_comes_next(
    desk: Desk, server: CountingServer
) -> None:
    server.answers["/a"] = Answer(
        302, headers={"location": "/b", "set-cookie": "who=somebody; path=/"}
    )
    await desk.fetch(server.url("/a"))
    assert [hit.headers.get("cookie") for hit in server.hits] == [None, None]


class Names:
    """A name server that answers as it was told, each time with the next answer."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


class Wire(httpcore2.AsyncNetworkBackend):
    """Notes where connections go, and takes them all to one server."""

    def __init__(self, port: int, dead: Iterable[str] = ()) -> None:
        self.port = port
        self.dead = set(dead)
        self.reached: list[str] = []
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.reached.append(host)
        if host in self.dead:
            raise httpcore2.ConnectError("nobody there")
        return await self._network.connect_tcp("127.0.0.1", self.port, timeout)


async def get(client: GuardedClient, url: str, **headers: str) -> int:
    async with client.stream("GET", url, timeout=SOON, headers=headers) as response:
        await response.aread()
        return response.status_code


@asynccontextmanager
async def client_of(names: Names, wire: Wire) -> AsyncIterator[GuardedClient]:
    client = GuardedClient(GuardedNetwork(parse_allow(""), names, wire))
    yield client
    await client.aclose()


async def test_connection_goes_to_the_address_that_was_vetted(server: CountingServer) -> None:
    """The name has another address when it is asked for once more: nobody asks."""
    names, wire = Names([PUBLIC], ["127.0.0.1"]), Wire(server.port)
    async with client_of(names, wire) as client:
        assert await get(client, "http://rebind.example/") == 200
    assert (names.asked, wire.reached) == (1, [PUBLIC])
    assert server.hits[0].headers["host"] == "rebind.example"


async def test_name_that_turns_private_is_refused_on_the_next_connection(
    server: CountingServer,
) -> None:
    server.answers["/"] = Answer(headers={"connection": "close"})
    names, wire = Names([PUBLIC], ["169.254.169.254"]), Wire(server.port)
    async with client_of(names, wire) as client:
        await get(client, "http://rebind.example/", connection="close")
        with pytest.raises(AddressRefused, match=r"rebind.example:80 .* link-local"):
            await get(client, "http://rebind.example/")
    assert wire.reached == [PUBLIC]


@pytest.mark.parametrize(
    "bad", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0", "::ffff:127.0.0.1", "2002:7f00:1::"]
)
async def test_one_private_address_among_public_ones_is_enough_to_refuse(
    server: CountingServer, bad: str
) -> None:
    wire = Wire(server.port)
    async with client_of(Names([PUBLIC, bad]), wire) as client:
        with pytest.raises(AddressRefused):
            await get(client, "http://mixed.example/")
    assert wire.reached == []


async def test_next_address_is_tried_where_the_first_is_dead(server: CountingServer) -> None:
    wire = Wire(server.port, dead=["2606:4700::1111"])
    async with client_of(Names(["2606:4700::1111", PUBLIC]), wire) as client:
        assert await get(client, "http://two.example/") == 200
    assert wire.reached == ["2606:4700::1111", PUBLIC]


async def test_name_that_is_not_known_is_trouble_of_its_host(server: CountingServer) -> None:
    async with client_of(Names([]), Wire(server.port)) as client:
        with pytest.raises(httpx2.TransportError, match="no address"):
            await get(client, "http://nowhere.example/")


async def test_proxies_of_the_environment_are_not_used(
    server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would resolve the name by itself."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    names = Names([PUBLIC])
    async with client_of(names, Wire(server.port)) as client:
        assert await get(client, "http://open.example/") == 200
    assert names.asked == 1


async def test_slow_name_server_holds_up_nobody_but_fetches() -> None:
    """What else runs in threads has threads of its own."""
    resolver = Resolver()
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    held = [
        loop.run_in_executor(
            resolver._threads, lambda: asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        )
        for _ in range(2 * RESOLVERS)
    ]
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), SOON) == "free"
    gate.set()
    await asyncio.gather(*held)
    resolver.close()
