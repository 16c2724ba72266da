"""`ctx.http`: the permits that requests take, and what their answers tell the lane."""

import time

import pytest

from penstock import JobContext, JobState, Penstock
from penstock.errors import RateLimited, Unavailable
from penstock.model.lane import LaneConfig
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.handler_app import FREE, LANES, SOON, HandlerApp, error_of
from tests.support.waiting import until
from tests.support.worker_processes import Farm


async def test_first_request_in_its_own_lane_is_paid_for_by_the_start(
    farm: Farm, server: CountingServer
) -> None:
    lanes = {"api": LaneConfig(min_interval_seconds=0.0, max_parallel=1, requests_per_day=100)}
    runner = HandlerApp(farm, lanes=lanes)

    async def work(ctx: JobContext) -> None:
        for _ in range(4):
            await ctx.http.get(server.url("/"))

    assert (await runner.run(work)).state is JobState.COMPLETED
    assert len(server.hits) == 4
    assert runner.use_of("api") == 4


async def test_lane_is_paused_also_where_the_handler_catches_the_refusal(
    runner: HandlerApp, server: CountingServer
) -> None:
    """That of the first request, whose permit is the job's and stays with it to its end."""
    server.answers["/"] = Answer(429, headers={"retry-after": "600"})

    async def work(ctx: JobContext) -> bool:
        try:
            await ctx.http.get(server.url("/"), patience=0)
        except RateLimited as error:
            report = ctx.lanes.reports.of(error)
            return report is not None and report.told
        return False

    assert (await runner.run(work)).result is True
    async with runner.app:
        (lane,) = await runner.app.lane_infos()
    assert lane.blocked_until is not None
    assert lane.blocked_until > time.time() + 500
    assert lane.in_flight == 0


def counted(*names: str) -> dict[str, LaneConfig]:
    """Lanes in which use can be read."""
    config = LaneConfig(min_interval_seconds=0.0, max_parallel=20, requests_per_day=1000)
    return {"fetch": FREE, **dict.fromkeys(names, config)}


async def test_without_a_lane_each_host_has_its_own(farm: Farm, server: CountingServer) -> None:
    runner = HandlerApp(farm, lanes=counted("host:127.0.0.1", "host:localhost", "named"))

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/", host="127.0.0.1"))
        await ctx.http.get(server.url("/", host="localhost"))
        await ctx.http.get(server.url("/", host="localhost"))
        await ctx.http.get(server.url("/"), lane="named")

    assert (await runner.run(work, lane=None)).state is JobState.COMPLETED
    used = {name: runner.use_of(name) for name in ("host:127.0.0.1", "host:localhost", "named")}
    assert used == {"host:127.0.0.1": 1, "host:localhost": 2, "named": 1}


@pytest.mark.parametrize("own", [None, "api"])
@pytest.mark.parametrize("named", [None, "named"])
async def test_redirect_to_another_host_takes_a_permit_in_that_hosts_lane(
    farm: Farm, server: CountingServer, own: str | None, named: str | None
) -> None:
    runner = HandlerApp(farm, lanes=counted("api", "named", "host:127.0.0.1", "host:localhost"))
    server.answers["/from"] = redirect(server.url("/to", host="localhost"))

    async def work(ctx: JobContext) -> str:
        return (await ctx.http.get(server.url("/from"), lane=named)).request.url.host

    done = await runner.run(work, lane=own)
    assert (done.state, done.result) == (JobState.COMPLETED, "localhost")
    assert runner.use_of("host:localhost") == 1
    assert runner.use_of(named or own or "host:127.0.0.1") == 1


async def test_redirect_on_the_same_host_stays_in_the_lane(
    farm: Farm, server: CountingServer
) -> None:
    runner = HandlerApp(farm, lanes=counted("api"))
    server.answers["/from"] = redirect("/to")

    async def work(ctx: JobContext) -> str:
        return (await ctx.http.get(server.url("/from"))).request.url.path

    assert (await runner.run(work)).result == "/to"
    assert runner.use_of("api") == 2


async def test_connection_error_names_where_and_lets_the_probe_know(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.down()

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"))

    done = await runner.run(work)
    kind, message = error_of(done)
    assert kind == "Unavailable"
    assert message.startswith(f"127.0.0.1:{server.port}: ")
    rows = runner.farm.query("SELECT address FROM lanes WHERE name = 'api'")
    assert rows == [(f"127.0.0.1:{server.port}",)]


async def test_connection_error_inside_a_permit_becomes_unavailable(runner: HandlerApp) -> None:
    async def work(ctx: JobContext) -> None:
        async with ctx.lanes.permit("api"):
            raise ConnectionResetError("gone")

    done = await runner.run(work, lane=None)
    assert error_of(done)[0] == "Unavailable"
    rows = runner.farm.query("SELECT suspect IS NOT NULL FROM lanes WHERE name = 'api'")
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
        await until(lambda: farm.query("SELECT 1 FROM slots") == [], "the slots")


@pytest.mark.parametrize("kind", ["seconds", "time"])
async def test_reset_header_says_how_long_a_429_lasts(
    farm: Farm, server: CountingServer, kind: str
) -> None:
    runner = HandlerApp(farm, grace_seconds=0.1)
    at = int(time.time()) + 600
    header = {"x-ratelimit-reset": "600"} if kind == "seconds" else {"ratelimit-reset": str(at)}
    server.answers["/"] = Answer(429, headers=header)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    runner.register(work, "api")
    async with runner.app, runner.app.running():
        await runner.app.enqueue("work")

        async def paused() -> float | None:
            return {one.name: one.blocked_until for one in await runner.app.lane_infos()}.get("api")

        assert await until(paused, "the lane to pause") == pytest.approx(at, abs=60)


async def test_404_closes_the_breaker_because_the_service_answers(
    farm: Farm, server: CountingServer
) -> None:
    quick = LaneConfig(min_interval_seconds=0.0, max_parallel=20, breaker_first_seconds=0.1)
    runner = HandlerApp(farm, lanes={**LANES, "api": quick})
    server.answers["/"] = Answer(503)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"))

    runner.register(work, "api")
    async with runner.app, runner.app.running():
        jobs = await runner.app.enqueue_many("work", [None] * 5)

        async def breaker() -> str:
            (lane,) = [one for one in await runner.app.lane_infos() if one.name == "api"]
            return lane.breaker

        async def is_open() -> bool:
            return await breaker() == "open"

        await until(is_open, "the breaker to open")
        server.answers["/"] = Answer(404)
        ended = [await runner.app.wait(job.id, timeout=SOON) for job in jobs]
        assert await breaker() == "closed"

    assert {error_of(job)[0] for job in ended} == {"HttpError"}


async def test_pages_that_are_forbidden_do_not_block_their_host(
    farm: Farm, server: CountingServer
) -> None:
    runner = HandlerApp(
        farm, lanes={**LANES, "host:*": {"min_interval_seconds": 0.0, "max_parallel": 9}}
    )
    server.answers["/"] = Answer(403)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    runner.register(work, None)
    async with runner.app, runner.app.running():
        jobs = await runner.app.enqueue_many("work", [None] * 6)
        ended = [await runner.app.wait(job.id, timeout=SOON) for job in jobs]
        lanes = await runner.app.lane_infos()

    assert {error_of(job)[0] for job in ended} == {"AuthenticationError"}
    assert [lane.blocked_why for lane in lanes] == [None] * len(lanes)


class Bug(Exception):
    pass


@pytest.mark.parametrize(
    "ended",
    ["a bug", "a result nobody can store", "its own time-out", "run later", "another lane's fault"],
)
async def test_breaker_closes_on_an_answer_whatever_the_handler_makes_of_it(
    runner: HandlerApp, server: CountingServer, ended: str
) -> None:
    async def work(ctx: JobContext) -> object:
        await ctx.http.get(server.url("/"))
        match ended:
            case "a bug":
                raise Bug
            case "its own time-out":
                raise TimeoutError("of something else")
            case "run later":
                ctx.run_later(SOON)
            case "another lane's fault":
                raise await broken(ctx)
        return Bug()

    async def broken(ctx: JobContext) -> Exception:
        server.answers["/other"] = Answer(500)
        try:
            await ctx.http.post(server.url("/other"), lane="fetch")
        except Unavailable as error:
            return error
        raise AssertionError

    await runner.opened_breaker("api")
    runner.register(work, "api")
    async with runner.app, runner.app.running():
        await runner.app.enqueue("work")

        async def closed() -> bool:
            lanes = {lane.name: lane.breaker for lane in await runner.app.lane_infos()}
            return lanes["api"] == "closed"

        await until(closed, "the breaker to close")


async def test_lane_is_answered_although_its_reader_has_a_bug(
    runner: HandlerApp, server: CountingServer
) -> None:
    async def work(ctx: JobContext) -> None:
        async with ctx.http.stream("GET", server.url("/"), lane="fetch") as parts:
            async for _ in parts:
                raise Bug

    await runner.opened_breaker("fetch")
    assert error_of(await runner.run(work))[0] == "Bug"
    assert runner.farm.query("SELECT step FROM lanes WHERE name = 'fetch'") == [(0,)]


async def test_timeout_in_a_request_after_an_answered_one_is_the_lanes(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/hangs"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))
        await ctx.http.post(server.url("/hangs"))

    assert error_of(await runner.run(work, timeout=4.0))[0] in ("JobTimeout", "Unavailable")
    rows = runner.farm.query("SELECT suspect IS NOT NULL FROM lanes WHERE name = 'api'")
    assert rows == [(1,)]
