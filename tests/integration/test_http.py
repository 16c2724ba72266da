"""`ctx.http`: requests that know their lane and their deadline."""

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.model.lane import LaneConfig
from tests.support.processes import Farm
from tests.support.server import Answer, CountingServer, redirect
from tests.support.waiting import until

SOON = 5.0
FREE = LaneConfig(min_interval_seconds=0.0, max_parallel=20)
LANES = {
    "api": FREE,
    "fetch": FREE,
    "host:*": LaneConfig(min_interval_seconds=0.0, max_parallel=20),
}

Work = Callable[[JobContext], Awaitable[Any]]


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


class Desk:
    """An app with one kind of job, in lane `api` or in none, whose handler a test brings."""

    def __init__(self, farm: Farm, **settings: Any) -> None:
        self.farm = farm
        self.app = farm.bare(**{"lanes": LANES, "max_retries": 0, **settings})

    def register(self, work: Work, lane: str | None, **options: Any) -> None:
        async def handler(ctx: JobContext) -> Any:
            return await work(ctx)

        self.app.job("work", lane=lane, **options)(handler)

    async def run(
        self, work: Work, *, lane: str | None = "api", deadline: float | None = None, **options: Any
    ) -> Job:
        """One job, from beginning to end."""
        self.register(work, lane, **options)
        async with self.app, self.app.running():
            at = None if deadline is None else time.time() + deadline
            job = await self.app.enqueue("work", deadline=at)
            return await self.app.wait(job.id, timeout=SOON)

    def use_of(self, lane: str) -> int:
        """How many permits of a lane with a daily limit have been taken."""
        rows = self.farm.query("SELECT used_today FROM lanes WHERE name = ?", lane)
        return int(rows[0][0]) if rows else 0


@pytest.fixture
def desk(farm: Farm) -> Desk:
    return Desk(farm)


def error_of(job: Job) -> tuple[str, str]:
    assert job.error is not None
    return job.error.type, job.error.message


async def test_answer_comes_with_its_body_read_and_decoded(
    desk: Desk, server: CountingServer
) -> None:
    body = gzip.compress(b'{"n": 1}')
    server.answers["/a"] = Answer(headers={"content-encoding": "gzip", "x-kept": "1"}, body=body)

    async def work(ctx: JobContext) -> list[Any]:
        response = await ctx.http.get(server.url("/a"), params={"q": "x"}, headers={"x-mine": "2"})
        return [response.status_code, response.json(), response.headers["x-kept"]]

    done = await desk.run(work)
    assert done.result == [200, {"n": 1}, "1"]
    (hit,) = server.hits
    assert (hit.method, hit.query, hit.headers["x-mine"]) == ("GET", "q=x", "2")


async def test_hanging_server_ends_the_job_at_its_timeout(
    desk: Desk, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    start = time.monotonic()
    done = await desk.run(work, timeout=0.5)
    assert done.state is JobState.FAILED
    assert error_of(done)[0] in ("Unavailable", "JobTimeout")
    assert 0.4 <= time.monotonic() - start <= 2.0


async def test_hanging_server_ends_the_job_at_its_deadline(
    desk: Desk, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    start = time.monotonic()
    done = await desk.run(work, deadline=0.5, max_retries=3)
    assert done.state is JobState.FAILED
    assert time.monotonic() - start <= 2.0
    assert len(server.hits) == 1


async def test_body_that_trickles_in_does_not_outlive_the_timeout(
    desk: Desk, server: CountingServer
) -> None:
    """Each part comes in time; all of them do not."""

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(b"HTTP/1.1 200 -\r\ncontent-length: 1000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.02)

    writers: list[asyncio.StreamWriter] = []
    trickler = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = trickler.sockets[0].getsockname()[1]

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(f"http://127.0.0.1:{port}/")

    try:
        start = time.monotonic()
        done = await desk.run(work, timeout=0.5)
        assert done.state is JobState.FAILED
        assert time.monotonic() - start <= 2.0
    finally:
        trickler.close()
        for writer in writers:
            writer.close()
        await asyncio.sleep(0.05)  # the handlers end


async def test_lane_timeout_bounds_every_request(farm: Farm, server: CountingServer) -> None:
    lane = LaneConfig(min_interval_seconds=0.0, max_parallel=5, timeout_seconds=0.3)
    desk = Desk(farm, lanes={"api": lane})
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> float:
        assert ctx.remaining() <= 0.3
        await ctx.http.post(server.url("/"))
        return 0.0

    start = time.monotonic()
    done = await desk.run(work, timeout=30.0)
    assert done.state is JobState.FAILED
    assert time.monotonic() - start <= 2.0


async def test_later_requests_get_only_what_is_left_of_the_time(
    desk: Desk, server: CountingServer
) -> None:
    server.answers["/slow"] = Answer(delay=0.3)
    server.answers["/hang"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/slow"))
        await ctx.http.get(server.url("/hang"))

    start = time.monotonic()
    done = await desk.run(work, timeout=0.6)
    assert done.state is JobState.FAILED
    assert 0.5 <= time.monotonic() - start <= 2.0


async def test_time_that_runs_out_between_requests_is_a_timeout_and_not_the_end(
    desk: Desk, server: CountingServer
) -> None:
    """The job's own timeout has passed, not its deadline: another run may be quicker."""

    async def work(ctx: JobContext) -> None:
        if ctx.attempt > 1:
            return
        while ctx.remaining() > 0:
            time.sleep(0.01)  # noqa: ASYNC251 (so that nobody can interrupt it before)
        await ctx.http.get(server.url("/"))

    done = await desk.run(work, timeout=0.2, max_retries=2)
    assert (done.state, done.attempts) == (JobState.COMPLETED, 2)


@pytest.mark.parametrize("fault", [Answer(503), Answer(502), Answer(504), Answer(reset=True)])
async def test_read_is_tried_again_briefly_with_a_permit_each(
    farm: Farm, server: CountingServer, fault: Answer
) -> None:
    lanes = {"api": LaneConfig(min_interval_seconds=0.0, max_parallel=1, requests_per_day=100)}
    desk = Desk(farm, lanes=lanes)
    server.answers["/"] = fault

    async def heal() -> None:
        await until(lambda: len(server.hits) == 2, "the second try")
        server.answers["/"] = Answer()

    healing = asyncio.create_task(heal())

    async def work(ctx: JobContext) -> int:
        return (await ctx.http.get(server.url("/"))).status_code

    done = await desk.run(work)
    await healing
    assert (done.state, done.result, done.attempts) == (JobState.COMPLETED, 200, 1)
    assert len(server.hits) == 3
    assert desk.use_of("api") == 3


async def test_read_is_not_tried_for_ever(desk: Desk, server: CountingServer) -> None:
    server.answers["/"] = Answer(503)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    done = await desk.run(work)
    assert error_of(done)[0] == "Unavailable"
    assert len(server.hits) == 3


@pytest.mark.parametrize("fault", [Answer(503), Answer(500), Answer(reset=True)])
async def test_write_is_never_tried_again(
    desk: Desk, server: CountingServer, fault: Answer
) -> None:
    server.answers["/"] = fault

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"), content=b"x")

    done = await desk.run(work)
    assert error_of(done)[0] == "Unavailable"
    assert [hit.method for hit in server.hits] == ["POST"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_other_writes_are_never_tried_again(
    desk: Desk, server: CountingServer, method: str
) -> None:
    server.answers["/"] = Answer(503)

    async def work(ctx: JobContext) -> None:
        await ctx.http.request(method.lower(), server.url("/"))

    await desk.run(work)
    assert [hit.method for hit in server.hits] == [method]


@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_4xx_is_the_end_and_says_nothing_of_the_lane(
    desk: Desk, server: CountingServer, status: int
) -> None:
    server.answers["/"] = Answer(status)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    done = await desk.run(work, max_retries=3)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    assert error_of(done) == ("HttpError", f"127.0.0.1: HTTP {status}")
    rows = desk.farm.query("SELECT step, suspect, blocked_until FROM lanes WHERE name = 'api'")
    assert rows == [(0, None, 0.0)]


async def test_first_request_in_its_own_lane_is_paid_for_by_the_start(
    farm: Farm, server: CountingServer
) -> None:
    lanes = {"api": LaneConfig(min_interval_seconds=0.0, max_parallel=1, requests_per_day=100)}
    desk = Desk(farm, lanes=lanes)

    async def work(ctx: JobContext) -> None:
        for _ in range(4):
            await ctx.http.get(server.url("/"))

    assert (await desk.run(work)).state is JobState.COMPLETED
    assert len(server.hits) == 4
    assert desk.use_of("api") == 4


def counted(*names: str) -> dict[str, LaneConfig]:
    """Lanes in which use can be read."""
    config = LaneConfig(min_interval_seconds=0.0, max_parallel=20, requests_per_day=1000)
    return {"fetch": FREE, **dict.fromkeys(names, config)}


async def test_without_a_lane_each_host_has_its_own(farm: Farm, server: CountingServer) -> None:
    desk = Desk(farm, lanes=counted("host:127.0.0.1", "host:localhost", "named"))

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/", host="127.0.0.1"))
        await ctx.http.get(server.url("/", host="localhost"))
        await ctx.http.get(server.url("/", host="localhost"))
        await ctx.http.get(server.url("/"), lane="named")

    assert (await desk.run(work, lane=None)).state is JobState.COMPLETED
    used = {name: desk.use_of(name) for name in ("host:127.0.0.1", "host:localhost", "named")}
    assert used == {"host:127.0.0.1": 1, "host:localhost": 2, "named": 1}


@pytest.mark.parametrize("own", [None, "api"])
@pytest.mark.parametrize("named", [None, "named"])
async def test_redirect_to_another_host_takes_a_permit_in_that_hosts_lane(
    farm: Farm, server: CountingServer, own: str | None, named: str | None
) -> None:
    desk = Desk(farm, lanes=counted("api", "named", "host:127.0.0.1", "host:localhost"))
    server.answers["/from"] = redirect(server.url("/to", host="localhost"))

    async def work(ctx: JobContext) -> str:
        return (await ctx.http.get(server.url("/from"), lane=named)).request.url.host

    done = await desk.run(work, lane=own)
    assert (done.state, done.result) == (JobState.COMPLETED, "localhost")
    assert desk.use_of("host:localhost") == 1
    assert desk.use_of(named or own or "host:127.0.0.1") == 1


async def test_redirect_on_the_same_host_stays_in_the_lane(
    farm: Farm, server: CountingServer
) -> None:
    desk = Desk(farm, lanes=counted("api"))
    server.answers["/from"] = redirect("/to")

    async def work(ctx: JobContext) -> str:
        return (await ctx.http.get(server.url("/from"))).request.url.path

    assert (await desk.run(work)).result == "/to"
    assert desk.use_of("api") == 2


async def test_credentials_do_not_follow_a_redirect_to_another_host(
    desk: Desk, server: CountingServer
) -> None:
    server.answers["/from"] = redirect(server.url("/to", host="localhost"))
    secret = {"Authorization": "Bearer secret", "Cookie": "session=secret"}

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/from"), headers=secret)

    assert (await desk.run(work)).state is JobState.COMPLETED
    first, second = server.hits
    assert first.headers["authorization"] == "Bearer secret"
    assert "secret" not in str(second.headers)


async def test_redirect_goes_where_it_says_without_the_query_of_the_first_request(
    desk: Desk, server: CountingServer
) -> None:
    """A key may stand there, and the new address has a query of its own."""
    server.answers["/from"] = redirect(server.url("/to?page=2", host="localhost"))

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/from"), params={"api_key": "secret"})

    assert (await desk.run(work)).state is JobState.COMPLETED
    assert [(hit.path, hit.query) for hit in server.hits] == [
        ("/from", "api_key=secret"),
        ("/to", "page=2"),
    ]


async def test_redirect_loop_ends(desk: Desk, server: CountingServer) -> None:
    server.answers["/a"], server.answers["/b"] = redirect("/b"), redirect("/a")

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/a"))

    done = await desk.run(work, max_retries=3)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    assert "redirects" in error_of(done)[1]
    assert len(server.hits) <= 11


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_write_that_is_redirected_is_followed_by_a_read(
    desk: Desk, server: CountingServer, status: int
) -> None:
    server.answers["/from"] = redirect("/to", status)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/from"), content=b"x")

    assert (await desk.run(work)).state is JobState.COMPLETED
    assert [(hit.method, hit.body) for hit in server.hits] == [("POST", b"x"), ("GET", b"")]


async def test_307_repeats_the_write_where_it_points(desk: Desk, server: CountingServer) -> None:
    server.answers["/from"] = redirect("/to", 307)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/from"), content=b"x")

    await desk.run(work)
    assert [(hit.method, hit.path, hit.body) for hit in server.hits] == [
        ("POST", "/from", b"x"),
        ("POST", "/to", b"x"),
    ]


async def test_body_over_the_limit_is_refused_whatever_its_length_is_said_to_be(
    desk: Desk, server: CountingServer
) -> None:
    bomb = gzip.compress(b"0" * 5_000_000)
    server.answers["/bomb"] = Answer(headers={"content-encoding": "gzip"}, body=bomb)
    server.answers["/big"] = Answer(body=b"0" * 200_000)

    async def work(ctx: JobContext) -> list[str]:
        said = []
        for path in ("/bomb", "/big"):
            try:
                await ctx.http.get(server.url(path), max_bytes=100_000)
            except Exception as error:
                said.append(str(error))
        return said

    done = await desk.run(work)
    assert len(done.result) == 2
    assert all("over 100,000 bytes" in said for said in done.result)


async def test_body_at_the_limit_is_read(desk: Desk, server: CountingServer) -> None:
    server.answers["/"] = Answer(body=b"0" * 1000)

    async def work(ctx: JobContext) -> int:
        return len((await ctx.http.get(server.url("/"), max_bytes=1000)).content)

    assert (await desk.run(work)).result == 1000


@pytest.mark.parametrize(
    "url",
    [
        "nowhere",
        "/path",
        "http://",
        "gopher://127.0.0.1/",
        "http://[::1",
        "http://127.0.0.1:99999/",
    ],
)
async def test_address_that_is_none_is_the_end_of_the_job(
    desk: Desk, server: CountingServer, url: str
) -> None:
    async def work(ctx: JobContext) -> None:
        await ctx.http.get(url)

    done = await desk.run(work, max_retries=3)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    rows = desk.farm.query("SELECT step, suspect FROM lanes WHERE name = 'api'")
    assert rows == [(0, None)], "and tells nothing of the lane"


async def test_connection_error_names_where_and_lets_the_probe_know(
    desk: Desk, server: CountingServer
) -> None:
    server.down()

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"))

    done = await desk.run(work)
    kind, message = error_of(done)
    assert kind == "Unavailable"
    assert message.startswith(f"127.0.0.1:{server.port}: ")
    rows = desk.farm.query("SELECT address FROM lanes WHERE name = 'api'")
    assert rows == [(f"127.0.0.1:{server.port}",)]


async def test_connection_error_inside_a_permit_becomes_unavailable(desk: Desk) -> None:
    async def work(ctx: JobContext) -> None:
        async with ctx.lanes.permit("api"):
            raise ConnectionResetError("gone")

    done = await desk.run(work, lane=None)
    assert error_of(done)[0] == "Unavailable"
    rows = desk.farm.query("SELECT suspect IS NOT NULL FROM lanes WHERE name = 'api'")
    assert rows == [(1,)]


async def test_slots_are_given_back_after_every_kind_of_answer(
    farm: Farm, server: CountingServer
) -> None:
    lanes = {"api": LaneConfig(min_interval_seconds=0.0, max_parallel=2)}
    app: Penstock = farm.bare(lanes=lanes, max_retries=0, max_workers=4)
    # With a success between any two that look like an outage.
    bad = [Answer(404), Answer(500), Answer(reset=True), redirect("/loop")]
    answers = [answer for one in bad for answer in (one, Answer())]
    for n, answer in enumerate(answers):
        server.answers[f"/{n}"] = answer
    server.answers["/loop"] = redirect("/loop")

    @app.job("visit")
    async def visit(ctx: JobContext, n: int) -> None:
        await ctx.http.post(server.url(f"/{n}"), lane="api")

    async with app, app.running():
        for n in range(len(answers)):
            job = await app.enqueue("visit", {"n": n})
            await app.wait(job.id, timeout=SOON)
        await until(lambda: farm.query("SELECT 1 FROM slots") == [], "the slots", patience=2.0)


async def test_request_in_another_lane_ends_at_the_timeout_of_that_lane(
    farm: Farm, server: CountingServer
) -> None:
    lanes = {**LANES, "brief": LaneConfig(min_interval_seconds=0.0, timeout_seconds=0.3)}
    desk = Desk(farm, lanes=lanes)
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"), lane="brief")

    start = time.monotonic()
    done = await desk.run(work, timeout=30.0)
    assert error_of(done)[0] == "Unavailable"
    assert time.monotonic() - start <= 3.0


@pytest.mark.parametrize("kind", ["seconds", "time"])
async def test_reset_header_says_how_long_a_429_lasts(
    desk: Desk, server: CountingServer, kind: str
) -> None:
    at = int(time.time()) + 600
    header = {"x-ratelimit-reset": "600"} if kind == "seconds" else {"ratelimit-reset": str(at)}
    server.answers["/"] = Answer(429, headers=header)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    desk.register(work, "api")
    async with desk.app, desk.app.running():
        await desk.app.enqueue("work")

        async def paused() -> float | None:
            return {one.name: one.blocked_until for one in await desk.app.lane_infos()}.get("api")

        assert await until(paused, "the lane to pause") == pytest.approx(at, abs=10)


async def test_404_closes_the_breaker_because_the_service_answers(
    farm: Farm, server: CountingServer
) -> None:
    quick = LaneConfig(min_interval_seconds=0.0, max_parallel=20, breaker_first_seconds=0.1)
    desk = Desk(farm, lanes={**LANES, "api": quick})
    server.answers["/"] = Answer(503)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"))

    desk.register(work, "api")
    async with desk.app, desk.app.running():
        jobs = await desk.app.enqueue_many("work", [None] * 5)

        async def breaker() -> str:
            (lane,) = [one for one in await desk.app.lane_infos() if one.name == "api"]
            return lane.breaker

        async def is_open() -> bool:
            return await breaker() == "open"

        await until(is_open, "the breaker to open")
        server.answers["/"] = Answer(404)
        ended = [await desk.app.wait(job.id, timeout=SOON) for job in jobs]
        assert await breaker() == "closed"

    assert {error_of(job)[0] for job in ended} == {"HttpError"}


async def test_pages_that_are_forbidden_do_not_block_their_host(
    farm: Farm, server: CountingServer
) -> None:
    desk = Desk(farm, lanes={**LANES, "host:*": {"min_interval_seconds": 0.0, "max_parallel": 9}})
    server.answers["/"] = Answer(403)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    desk.register(work, None)
    async with desk.app, desk.app.running():
        jobs = await desk.app.enqueue_many("work", [None] * 6)
        ended = [await desk.app.wait(job.id, timeout=SOON) for job in jobs]
        lanes = await desk.app.lane_infos()

    assert {error_of(job)[0] for job in ended} == {"AuthenticationError"}
    assert [lane.blocked_why for lane in lanes] == [None] * len(lanes)
