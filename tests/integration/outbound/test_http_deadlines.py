"""`ctx.http`: whatever a server does, a request ends in time."""

import asyncio
import time

from penstock import JobContext, JobState
from penstock.model.lane import LaneConfig
from tests.support.counting_server import Answer, CountingServer
from tests.support.handler_app import LANES, HandlerApp, error_of
from tests.support.worker_processes import Farm

IN_TIME = 30.0
"""Nothing else would end these before minutes have passed."""


async def test_hanging_server_ends_the_job_at_its_timeout(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    start = time.monotonic()
    done = await runner.run(work, timeout=0.5)
    assert done.state is JobState.FAILED
    assert error_of(done)[0] in ("Unavailable", "JobTimeout")
    assert 0.4 <= time.monotonic() - start <= IN_TIME


async def test_hanging_server_ends_the_job_at_its_deadline(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    start = time.monotonic()
    done = await runner.run(work, deadline=3.0, max_retries=3)
    assert done.state is JobState.FAILED
    assert time.monotonic() - start <= IN_TIME
    assert len(server.hits) <= 1, "none, if the machine stood still until then"


async def test_body_that_trickles_in_does_not_outlive_the_timeout(
    runner: HandlerApp, server: CountingServer
) -> None:
    """Each part comes in time; all of them do not."""

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append((task, writer))
        writer.write(b"HTTP/1.1 200 -\r\ncontent-length: 1000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.02)

    handlers: list[tuple[asyncio.Task[None], asyncio.StreamWriter]] = []
    trickler = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = trickler.sockets[0].getsockname()[1]

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(f"http://127.0.0.1:{port}/")

    try:
        start = time.monotonic()
        done = await runner.run(work, timeout=0.5)
        assert done.state is JobState.FAILED
        assert time.monotonic() - start <= IN_TIME
    finally:
        trickler.close()
        for task, writer in handlers:
            writer.close()
            await task


async def test_lane_timeout_bounds_every_request(farm: Farm, server: CountingServer) -> None:
    lane = LaneConfig(min_interval_seconds=0.0, max_parallel=5, timeout_seconds=0.3)
    runner = HandlerApp(farm, lanes={"api": lane})
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> float:
        assert ctx.remaining() <= 0.3
        await ctx.http.post(server.url("/"))
        return 0.0

    start = time.monotonic()
    done = await runner.run(work, timeout=600.0)
    assert done.state is JobState.FAILED
    assert time.monotonic() - start <= IN_TIME


async def test_later_requests_get_only_what_is_left_of_the_time(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/slow"] = Answer(delay=0.3)
    server.answers["/hang"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/slow"))
        await ctx.http.get(server.url("/hang"))

    start = time.monotonic()
    done = await runner.run(work, timeout=0.6)
    assert done.state is JobState.FAILED
    assert 0.5 <= time.monotonic() - start <= IN_TIME


async def test_time_that_runs_out_between_requests_is_a_timeout_and_not_the_end(
    runner: HandlerApp, server: CountingServer
) -> None:
    """The job's own timeout has passed, not its deadline: another run may be quicker."""

    async def work(ctx: JobContext) -> None:
        if ctx.attempt > 1:
            return
        while ctx.remaining() > 0:
            time.sleep(0.01)  # noqa: ASYNC251 (so that nobody can interrupt it before)
        await ctx.http.get(server.url("/"))

    done = await runner.run(work, timeout=1.0, max_retries=2)
    assert (done.state, done.attempts) == (JobState.COMPLETED, 2)


async def test_request_in_another_lane_ends_at_the_timeout_of_that_lane(
    farm: Farm, server: CountingServer
) -> None:
    lanes = {**LANES, "brief": LaneConfig(min_interval_seconds=0.0, timeout_seconds=0.3)}
    runner = HandlerApp(farm, lanes=lanes)
    server.answers["/"] = Answer(hang=True)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"), lane="brief")

    start = time.monotonic()
    done = await runner.run(work, timeout=600.0)
    assert error_of(done)[0] == "Unavailable"
    assert time.monotonic() - start <= IN_TIME
