"""`penstock forecast`."""

import pytest

from penstock import JobContext, Penstock
from tests.support.cli import Cli

LANES = {"embedder": {"min_interval_seconds": 0.0, "max_parallel": 2}}


@pytest.fixture
def backlog(cli: Cli) -> Cli:
    """A queue in which a hundred jobs wait in a lane, and ten of another tenant without one."""
    app = Penstock(cli.url, durable=False, lanes=LANES)

    @app.job("embed", lane="embedder")
    async def embed(ctx: JobContext) -> None: ...

    @app.job("plain")
    async def plain(ctx: JobContext) -> None: ...

    async def enqueue() -> None:
        await app.enqueue_many("embed", [{}] * 100)
        await app.enqueue_many("plain", [{}] * 10, tenant="acme")

    cli.call(enqueue(), app)
    return cli


def test_an_empty_queue_has_nothing_to_forecast(cli: Cli) -> None:
    async def nothing() -> None: ...

    cli.call(nothing(), Penstock(cli.url, durable=False))
    assert cli("forecast").out == "nothing is queued or running\n"


def test_a_forecast_says_when_what_and_what_if(backlog: Cli) -> None:
    told = backlog("forecast").out.splitlines()
    assert told[0] == "110 jobs never, as things stand"
    assert told[1] == (
        "lane embedder: 100 embed, no worker process handles them: never until one does"
    )
    assert told[-2].startswith("no worker process is alive")

    asked = backlog("forecast", "--processes", "1", "--workers", "20")
    whole, binding, other, assumed = asked.out.splitlines()
    assert whole.startswith("110 jobs: done ")
    assert binding.startswith("lane embedder binds: 100 embed at 12")
    assert "held by its slots; done " in binding
    assert other.startswith("no lane: 10 plain")
    assert assumed == "assumed, because none has run: a second each for embed, plain"


def test_a_forecast_as_json_is_the_view(backlog: Cli) -> None:
    def done_in(*arguments: str) -> float:
        told = backlog("forecast", "--processes", "1", "--json", *arguments).json
        return float(told["done_at"] - told["at"])

    assert 49 < done_in() < 53
    assert 24 < done_in("--set", "embedder.max_parallel=4") < 27
    assert done_in("--tenant", "acme") < 3
    assert done_in("--kind", "pl*") < 3


def test_a_question_that_cannot_be_asked_is_told(backlog: Cli) -> None:
    failed = backlog("forecast", "--set", "embedder.colour=4", code=2)
    assert "'colour' is not one of requests_per_interval" in failed.err
    failed = backlog("forecast", "--set", "nothing.max_parallel=4", code=2)
    assert "lane 'nothing' is not in use" in failed.err
