"""`ctx.fetch`: what others name is fetched, and nothing else is reached on the way."""

import gzip
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Job, JobContext, JobState
from penstock.model.lane import LaneConfig
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.worker_processes import Farm

SOON = 60.0
MOST = 100_000
FREE = LaneConfig(min_interval_seconds=0.0, max_parallel=20)
COUNTED = LaneConfig(
    min_interval_seconds=0.0, max_parallel=20, requests_per_day=100, parent="fetch"
)
PARENT = LaneConfig(min_interval_seconds=0.0, max_parallel=1, requests_per_day=100)


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


class HandlerApp:
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
            return await app.wait(job.id, timeout=SOON)

    async def refusal(self, url: str, **options: Any) -> tuple[str, str]:
        job = await self.fetch(url, **options)
        assert job.state is JobState.FAILED, job
        assert job.error is not None
        return job.error.type, job.error.message

    def use_of(self, lane: str) -> int:
        (row,) = self.farm.query("SELECT used_today FROM lanes WHERE name = ?", lane)
        return int(row[0])


@pytest.fixture
def runner(farm: Farm, server: CountingServer) -> HandlerApp:
    return HandlerApp(farm, server)


async def test_document_comes_with_what_is_said_of_it(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/a"] = Answer(
        headers={
            "content-type": "Text/HTML; charset=EUC-KR",
            "content-disposition": "attachment; filename*=UTF-8''%E6%B0%B4%2F%E9%96%80.html",
            "content-encoding": "gzip",
        },
        body=gzip.compress(b"<p>open</p>"),
    )
    done = await runner.fetch(server.url("/a?b=c#d"))
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
    runner: HandlerApp, server: CountingServer, path: str, name: str
) -> None:
    result = (await runner.fetch(server.url(path))).result
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
    runner: HandlerApp, server: CountingServer, target: str, why: str
) -> None:
    server.answers["/hop"] = redirect("/away")
    server.answers["/away"] = redirect(target, 307)
    kind, said = await runner.refusal(server.url("/hop"))
    assert kind == "AddressRefused"
    assert why in said
    assert [hit.path for hit in server.hits] == ["/hop", "/away"]


async def test_five_redirects_are_followed_and_no_more(
    runner: HandlerApp, server: CountingServer
) -> None:
    for n in range(7):
        server.answers[f"/{n}"] = redirect(f"/{n + 1}")
    server.answers["/7"] = Answer(body=b"there")
    assert (await runner.fetch(server.url("/2"))).result["text"] == "there"
    assert await runner.refusal(server.url("/1")) == (
        "FetchError",
        "127.0.0.1: more than 5 redirects",
    )


async def test_every_hop_has_a_permit_of_its_host_and_the_parent_has_one_slot(
    runner: HandlerApp, server: CountingServer
) -> None:
    """The parent takes one at a time: a job that is in it already does not wait for itself."""
    there = server.url("/b", host="localhost")
    server.answers["/a"] = redirect(there)
    server.answers["/b"] = redirect(server.url("/c", host="localhost"))
    server.answers["/c"] = redirect(server.url("/d"))
    server.answers["/d"] = Answer(body=b"there")
    done = await runner.fetch(server.url("/a"), lanes={"fetch": PARENT, "host:*": COUNTED})
    assert done.result["text"] == "there"
    assert [hit.headers["host"].partition(":")[0] for hit in server.hits] == [
        *("127.0.0.1", "localhost"),
        *("localhost", "127.0.0.1"),
    ]
    assert runner.use_of("host:127.0.0.1") == 2
    assert runner.use_of("host:localhost") == 2
    assert runner.use_of("fetch") == 4


async def test_redirect_within_a_host_keeps_the_default_distance(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/a"] = redirect("/b")
    begun = time.monotonic()  # the first may be slow to arrive
    done = await runner.fetch(server.url("/a"), lanes={"fetch": FREE})
    assert done.state is JobState.COMPLETED
    assert done.releases == 0
    assert server.hits[1].arrived - begun >= 1.0, "and not at once"


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
    runner: HandlerApp, server: CountingServer, answer: Answer, kind: str
) -> None:
    server.answers["/"] = answer
    found, said = await runner.refusal(server.url("/?token=canary"))
    assert found == kind, said  # and not that its time was over
    assert "canary" not in said


@pytest.mark.parametrize(
    "answer", [Answer(hang=True), Answer(endless=True, body=b"x")], ids=["hangs", "trickles"]
)
async def test_server_that_takes_its_time_has_no_more_than_the_job(
    runner: HandlerApp, server: CountingServer, answer: Answer
) -> None:
    server.answers["/"] = answer
    start = time.monotonic()
    kind, _ = await runner.refusal(server.url("/"), timeout=0.5)
    assert kind in ("Unavailable", "JobTimeout")
    assert 0.4 <= time.monotonic() - start <= SOON / 2


async def test_trouble_of_a_host_is_not_probed(runner: HandlerApp, server: CountingServer) -> None:
    """A probe resolves names by itself, and would reach what the guard does not."""
    server.down()
    kind, _ = await runner.refusal(server.url("/"))
    assert kind == "Unavailable"
    assert runner.farm.query("SELECT name FROM lanes WHERE address IS NOT NULL") == []


async def test_cookies_are_not_kept_for_whoever_comes_next(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/a"] = Answer(
        302, headers={"location": "/b", "set-cookie": "who=somebody; path=/"}
    )
    await runner.fetch(server.url("/a"))
    assert [hit.headers.get("cookie") for hit in server.hits] == [None, None]
