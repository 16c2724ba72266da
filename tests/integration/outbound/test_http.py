"""`ctx.http`: answers, what is tried again, and what is refused."""

import asyncio
import gzip
from typing import Any

import pytest

from penstock import JobContext, JobState
from penstock.errors import AuthenticationError, HttpError, Unavailable
from penstock.model.lane import LaneConfig
from tests.support.counting_server import Answer, CountingServer
from tests.support.handler_app import HandlerApp, error_of
from tests.support.waiting import until
from tests.support.worker_processes import Farm


async def test_answer_comes_with_its_body_read_and_decoded(
    runner: HandlerApp, server: CountingServer
) -> None:
    body = gzip.compress(b'{"n": 1}')
    server.answers["/a"] = Answer(headers={"content-encoding": "gzip", "x-kept": "1"}, body=body)

    async def work(ctx: JobContext) -> list[Any]:
        response = await ctx.http.get(server.url("/a"), params={"q": "x"}, headers={"x-mine": "2"})
        return [response.status_code, response.json(), response.headers["x-kept"]]

    done = await runner.run(work)
    assert done.result == [200, {"n": 1}, "1"]
    (hit,) = server.hits
    assert (hit.method, hit.query, hit.headers["x-mine"]) == ("GET", "q=x", "2")


async def test_what_a_server_wants_remembered_is_not_sent_by_the_next_job(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/"] = Answer(headers={"set-cookie": "session=of-the-first; Path=/"})

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))
        await ctx.http.get(server.url("/"), cookies={"own": "mine"})

    await runner.run(work)
    assert [hit.headers.get("cookie") for hit in server.hits] == [None, "own=mine"]


@pytest.mark.parametrize("fault", [Answer(503), Answer(502), Answer(504), Answer(reset=True)])
async def test_read_is_tried_again_briefly_with_a_permit_each(
    farm: Farm, server: CountingServer, fault: Answer
) -> None:
    lanes = {"api": LaneConfig(min_interval_seconds=0.0, max_parallel=1, requests_per_day=100)}
    runner = HandlerApp(farm, lanes=lanes)
    server.answers["/"] = fault

    async def heal() -> None:
        await until(lambda: len(server.hits) == 2, "the second try")
        server.answers["/"] = Answer()

    healing = asyncio.create_task(heal())

    async def work(ctx: JobContext) -> int:
        return (await ctx.http.get(server.url("/"))).status_code

    done = await runner.run(work)
    await healing
    assert (done.state, done.result, done.attempts) == (JobState.COMPLETED, 200, 1)
    assert len(server.hits) == 3
    assert runner.use_of("api") == 3


async def test_read_is_not_tried_for_ever(runner: HandlerApp, server: CountingServer) -> None:
    server.answers["/"] = Answer(503)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/"))

    done = await runner.run(work)
    assert error_of(done)[0] == "Unavailable"
    assert len(server.hits) == 3


@pytest.mark.parametrize("fault", [Answer(503), Answer(500), Answer(reset=True)])
async def test_write_is_never_tried_again(
    runner: HandlerApp, server: CountingServer, fault: Answer
) -> None:
    server.answers["/"] = fault

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/"), content=b"x")

    done = await runner.run(work)
    assert error_of(done)[0] == "Unavailable"
    assert [hit.method for hit in server.hits] == ["POST"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_other_writes_are_never_tried_again(
    runner: HandlerApp, server: CountingServer, method: str
) -> None:
    server.answers["/"] = Answer(503)

    async def work(ctx: JobContext) -> None:
        await ctx.http.request(method.lower(), server.url("/"))

    await runner.run(work)
    assert [hit.method for hit in server.hits] == [method]


@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_4xx_is_the_end_and_says_nothing_of_the_lane(
    runner: HandlerApp, server: CountingServer, status: int
) -> None:
    server.answers["/"] = Answer(status)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/v1/bot12345:ABCDEFGHIJKLMNOP/things?key=secret"))

    done = await runner.run(work, max_retries=3)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    place = f"127.0.0.1:{server.port}/v1/bot1.../things"
    assert error_of(done) == ("HttpError", f"{place}: HTTP {status}")
    rows = runner.farm.query("SELECT step, suspect, blocked_until FROM lanes WHERE name = 'api'")
    assert rows == [(0, None, 0.0)]


REFUSAL = b'{"error": {"message": "maximum context length is 8192 tokens"}, "api_key": "sk-1"}'


@pytest.mark.parametrize(
    ("status", "how"), [(400, "whole"), (400, "streamed"), (401, "whole"), (500, "whole")]
)
async def test_error_carries_what_the_server_said(
    runner: HandlerApp, server: CountingServer, status: int, how: str
) -> None:
    headers = {"x-request-id": "r1", "set-cookie": "session=word"}
    server.answers["/"] = Answer(status, headers=headers, body=REFUSAL)
    raised: list[Any] = []

    async def work(ctx: JobContext) -> None:
        url = server.url("/v1/chat?token=hush&n=1")
        try:
            if how == "whole":
                await ctx.http.post(url, json={})
            else:
                async with ctx.http.stream("POST", url, json={}):
                    pass
        except (HttpError, Unavailable, AuthenticationError) as error:
            raised.append(error)
            raise

    done = await runner.run(work)
    [error] = raised
    assert error.response.status_code == status
    assert error.response.json()["api_key"] == "sk-1"
    assert error.status == status
    assert error.url.endswith("/v1/chat?token=***&n=1")
    assert (error.headers["x-request-id"], error.headers["set-cookie"]) == ("r1", "***")
    assert "maximum context length is 8192 tokens" in error.body
    assert "sk-1" not in error.body
    assert done.error is not None
    assert done.error.response == {"url": error.url, "status": status, "body": error.body}


async def test_body_of_an_error_is_kept_up_to_4_kib(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/"] = Answer(404, body="é".encode() * 100_000)

    async def work(ctx: JobContext) -> list[Any]:
        try:
            await ctx.http.get(server.url("/"))
        except HttpError as error:
            return [error.body, len(error.response.content)]
        raise AssertionError("not raised")

    assert (await runner.run(work)).result == ["é" * 4096, 200_000]


async def test_line_of_the_handler_is_kept_where_a_request_fails(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/"] = Answer(400)

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/my-own-line"))

    done = await runner.run(work)
    assert done.error is not None
    assert done.error.place.startswith("tests/integration/outbound/test_http.py:")
    assert 'await ctx.http.get(server.url("/my-own-line"))' in done.history[0].traceback
    assert "engine/http.py" not in done.history[0].traceback


async def test_body_over_the_limit_is_refused_whatever_its_length_is_said_to_be(
    runner: HandlerApp, server: CountingServer
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

    done = await runner.run(work)
    assert len(done.result) == 2
    assert all("over 100,000 bytes" in said for said in done.result)


async def test_body_at_the_limit_is_read(runner: HandlerApp, server: CountingServer) -> None:
    server.answers["/"] = Answer(body=b"0" * 1000)

    async def work(ctx: JobContext) -> int:
        return len((await ctx.http.get(server.url("/"), max_bytes=1000)).content)

    assert (await runner.run(work)).result == 1000


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
    runner: HandlerApp, server: CountingServer, url: str
) -> None:
    async def work(ctx: JobContext) -> None:
        await ctx.http.get(url)

    done = await runner.run(work, max_retries=3)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    rows = runner.farm.query("SELECT step, suspect FROM lanes WHERE name = 'api'")
    assert rows == [(0, None)], "and tells nothing of the lane"
