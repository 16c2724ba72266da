"""`ctx.http`: redirects, and what goes along with them."""

import pytest

from penstock import JobContext, JobState
from tests.support.counting_server import CountingServer, redirect
from tests.support.handler_app import HandlerApp, error_of


async def test_credentials_do_not_follow_a_redirect_to_another_host(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/from"] = redirect(server.url("/to", host="localhost"))
    secret = {"Authorization": "Bearer secret", "Cookie": "session=secret"}

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/from"), headers=secret)

    assert (await runner.run(work)).state is JobState.COMPLETED
    first, second = server.hits
    assert first.headers["authorization"] == "Bearer secret"
    assert "secret" not in str(second.headers)


async def test_redirect_goes_where_it_says_without_the_query_of_the_first_request(
    runner: HandlerApp, server: CountingServer
) -> None:
    """A key may stand there, and the new address has a query of its own."""
    server.answers["/from"] = redirect(server.url("/to?page=2", host="localhost"))

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/from"), params={"api_key": "secret"})

    assert (await runner.run(work)).state is JobState.COMPLETED
    assert [(hit.path, hit.query) for hit in server.hits] == [
        ("/from", "api_key=secret"),
        ("/to", "page=2"),
    ]


async def test_redirect_loop_ends(runner: HandlerApp, server: CountingServer) -> None:
    server.answers["/a"], server.answers["/b"] = redirect("/b"), redirect("/a")

    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/a"))

    done = await runner.run(work, max_retries=3)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    assert "redirects" in error_of(done)[1]
    assert len(server.hits) <= 11


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_write_that_is_redirected_is_followed_by_a_read(
    runner: HandlerApp, server: CountingServer, status: int
) -> None:
    server.answers["/from"] = redirect("/to", status)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/from"), content=b"x")

    assert (await runner.run(work)).state is JobState.COMPLETED
    assert [(hit.method, hit.body) for hit in server.hits] == [("POST", b"x"), ("GET", b"")]


async def test_307_repeats_the_write_where_it_points(
    runner: HandlerApp, server: CountingServer
) -> None:
    server.answers["/from"] = redirect("/to", 307)

    async def work(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/from"), content=b"x")

    await runner.run(work)
    assert [(hit.method, hit.path, hit.body) for hit in server.hits] == [
        ("POST", "/from", b"x"),
        ("POST", "/to", b"x"),
    ]
