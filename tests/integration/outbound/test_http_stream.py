"""`ctx.http.stream`: an answer as it comes, under one permit."""

import pytest

from penstock import JobContext
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.handler_app import HandlerApp, error_of
from tests.support.waiting import PATIENCE, until


async def test_parts_are_there_before_the_end(runner: HandlerApp, server: CountingServer) -> None:
    server.answers["/"] = Answer(parts=[b"one", b"two"], stalls=True)

    async def work(ctx: JobContext) -> str:
        async with ctx.http.stream("GET", server.url("/")) as parts:
            return "".join([(await anext(parts)).decode() for _ in range(2)])

    assert (await runner.run(work)).result == "onetwo"


async def test_permit_is_held_until_the_block_ends(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/"] = Answer(parts=[b"one"], stalls=True)

    async def held() -> int:
        return sum(lane.in_flight for lane in await runner.app.lane_infos())

    async def free() -> bool:
        return await held() == 0

    async def work(ctx: JobContext) -> int:
        async with ctx.http.stream("GET", server.url("/"), lane="api") as parts:
            await anext(parts)
            meanwhile = await held()
        await until(free, "the permit to be given back")
        return meanwhile

    assert (await runner.run(work, lane=None)).result == 1


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (redirect("/elsewhere"), "HttpError", "HTTP 302 is not followed"),
        (Answer(404), "HttpError", "HTTP 404"),
        (Answer(503), "Unavailable", "HTTP 503"),
        (Answer(parts=[b"x" * 60, b"x" * 60]), "HttpError", "body over 100 bytes"),
        (Answer(parts=[b"one"], cut=True), "Unavailable", "RemoteProtocolError"),
        (Answer(parts=[b"one"], stalls=True), "Unavailable", "nothing for 0.2 s"),
    ],
)
async def test_trouble_is_raised_as_what_it_means(
    runner: HandlerApp, server: CountingServer, answer: Answer, error: str, message: str
) -> None:
    server.answers["/"] = answer
    silence = 0.2 if answer.stalls else PATIENCE

    async def work(ctx: JobContext) -> None:
        url = server.url("/").replace("//", "//me:s3cret@")
        async with ctx.http.stream("GET", url, max_bytes=100, silence=silence) as parts:
            async for _ in parts:
                pass

    done = await runner.run(work)
    assert error_of(done)[0] == error
    assert message in error_of(done)[1]
    assert "s3cret" not in str(done)
    assert len(server.hits) == 1
