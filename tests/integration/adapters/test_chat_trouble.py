"""Language models that fail, are slow or fall silent, and readers that leave: each ends in time, as
what it means."""

import asyncio
import time
from contextlib import aclosing, suppress
from typing import Any

import pytest

from penstock import JobContext, JobState
from penstock.errors import CutShort, RateLimited, Unavailable
from penstock.model.answer import Phase
from penstock.model.lane import LaneConfig
from penstock.ports.language_model import LanguageModel
from tests.support.handler_app import SOON, HandlerApp, error_of
from tests.support.model_server import ANSWER, PLAN, ModelServer, Reply
from tests.support.phase_models import LANES, QUESTION, ask, phases, streamed
from tests.support.waiting import until
from tests.support.worker_processes import Farm

both = pytest.mark.parametrize("how", ["whole", "streamed"])


LONG = 50.0
"""Seconds that an answer takes which nobody ends."""


@pytest.fixture
def runner(farm: Farm) -> HandlerApp:
    return HandlerApp(farm, lanes=LANES)


async def all_lost(model: ModelServer) -> None:
    """A machine that stands still may have left no time to ask at all."""
    await until(
        lambda: all(asked.hit.lost for asked in model.asked(PLAN)), "the end of the connection"
    )


@both
@pytest.mark.parametrize("own", [True, False], ids=["own lane", "no lane"])
async def test_lane_ends_a_request_that_takes_too_long(
    farm: Farm, model: ModelServer, how: str, own: bool
) -> None:
    brief = LaneConfig(min_interval_seconds=0.0, max_parallel=4, timeout_seconds=0.5)
    runner = HandlerApp(farm, lanes={**LANES, "llm.plan": brief})
    model.script[PLAN] = Reply("a " * 1000, pause=LONG / 1000, hang=how == "whole")
    plan = phases(model)[Phase.PLAN]
    start = time.monotonic()
    done = await runner.run(lambda ctx: ask(ctx, plan, how), lane="llm.plan" if own else None)
    assert error_of(done)[0] in ("Unavailable", "JobTimeout")
    assert time.monotonic() - start < LONG / 2
    await all_lost(model)


@both
async def test_deadline_of_the_job_ends_a_request(
    runner: HandlerApp, model: ModelServer, how: str
) -> None:
    model.script[PLAN] = Reply("a " * 1000, pause=LONG / 1000, hang=how == "whole")
    plan = phases(model)[Phase.PLAN]
    start = time.monotonic()
    done = await runner.run(lambda ctx: ask(ctx, plan, how), deadline=1.0, lane=None)
    assert done.state is JobState.FAILED
    assert time.monotonic() - start < LONG / 2
    await all_lost(model)


async def test_silence_in_the_middle_of_a_stream_is_an_outage(
    runner: HandlerApp, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.adapters.models.chat.SILENCE", 3.0)
    model.script[ANSWER] = Reply("one two three", stall_after=2, delay=3.5)
    pieces: list[str] = []
    done = await runner.run(lambda ctx: streamed(phases(model)[Phase.ANSWER], ctx, pieces))
    assert error_of(done)[0] == "Unavailable"
    assert error_of(done)[1].endswith("nothing for 3 s")
    assert pieces == ["one", " two"]


async def test_stream_that_breaks_off_is_an_outage_and_keeps_what_came(
    runner: HandlerApp, model: ModelServer
) -> None:
    model.script[ANSWER] = Reply("one two three", cut_after=2)
    pieces: list[str] = []

    async def work(ctx: JobContext) -> list[Any]:
        try:
            await streamed(phases(model)[Phase.ANSWER], ctx, pieces)
        except Unavailable as error:
            report = ctx.lanes.reports.of(error)
            assert report is not None
            return [report.lane, report.told]
        return []

    assert (await runner.run(work)).result == ["llm.answer", True]
    assert pieces == ["one", " two"]


async def test_answer_for_want_of_tokens_is_kept_and_said_to_be_cut(
    runner: HandlerApp, model: ModelServer
) -> None:
    model.script[ANSWER] = Reply("one two", finish="length")
    pieces: list[str] = []

    async def work(ctx: JobContext) -> str:
        try:
            return await streamed(phases(model)[Phase.ANSWER], ctx, pieces)
        except CutShort:
            return "".join(pieces) + " ..."

    assert (await runner.run(work)).result == "one two ..."


@pytest.mark.parametrize("where", ["in the stream", "in between"])
async def test_cancelled_job_hangs_up_at_once(
    runner: HandlerApp, model: ModelServer, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is just then: waiting for the next piece, or doing something with the last."""
    monkeypatch.setattr("penstock.adapters.models.chat.SILENCE", 600.0)
    model.script[ANSWER] = Reply("one two", stall_after=1)
    answer = phases(model)[Phase.ANSWER]

    async def work(ctx: JobContext) -> None:
        async with aclosing(answer.stream(ctx, QUESTION, most=100)) as pieces:
            async for _ in pieces:
                begun.set()
                if where == "in between":
                    await asyncio.Event().wait()

    begun = asyncio.Event()
    runner.register(work, lane=None)
    async with runner.app, runner.app.running():
        job = await runner.app.enqueue("work")
        async with asyncio.timeout(SOON):
            await begun.wait()
        await runner.app.cancel(job.id)
        (asked,) = model.asked()
        await until(lambda: asked.hit.lost, "the end of the connection", patience=SOON / 2)
        assert (await runner.app.wait(job.id, timeout=SOON)).state is JobState.CANCELLED

        async def left_alone() -> bool:
            lanes = {lane.name: lane for lane in await runner.app.lane_infos()}
            assert lanes["llm.answer"].breaker == "closed"
            return lanes["llm.answer"].in_flight == 0

        await until(left_alone, "the slot to be given back")


async def test_reader_that_has_enough_hangs_up(runner: HandlerApp, model: ModelServer) -> None:
    model.script[ANSWER] = Reply("one two", stall_after=1)
    answer = phases(model)[Phase.ANSWER]

    async def work(ctx: JobContext) -> str:
        async with aclosing(answer.stream(ctx, QUESTION, most=100)) as pieces:
            async for piece in pieces:
                return piece
        return ""

    assert (await runner.run(work)).result == "one"
    (asked,) = model.asked()
    await until(lambda: asked.hit.lost, "the end of the connection")


async def test_slow_reader_does_not_hold_the_lane(runner: HandlerApp, model: ModelServer) -> None:
    """What the server has said waits here; its place is free for others."""
    model.script[ANSWER] = "one two three"
    answer = phases(model)[Phase.ANSWER]

    async def work(ctx: JobContext) -> str:
        text = ""
        async with aclosing(answer.stream(ctx, QUESTION, most=100)) as pieces:
            async for piece in pieces:
                text += piece
                await until(lambda: model.asked()[0].hit.answered, "the end of the answer")
                await until(free, "a free lane")
        return text

    async def free() -> bool:
        lanes = {lane.name: lane for lane in await runner.app.lane_infos()}
        return lanes["llm.answer"].in_flight == 0

    assert (await runner.run(work, lane=None)).result == "one two three"


@both
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(status=400), "HttpError"),
        (Reply(status=401), "AuthenticationError"),
        (Reply(status=403), "AuthenticationError"),
        (Reply(status=429, retry_after=600), "RateLimited"),
        (Reply(status=500), "Unavailable"),
        (Reply(reset=True), "Unavailable"),
        (Reply(raw=b"<html>canary</html>"), "ModelError"),
        (Reply(text=None), "ModelError"),
        (Reply(text=" "), "ModelError"),
        (Reply("canary", finish="length"), "CutShort"),
        (Reply(raw=b": canary\n" * 2_000_000), "HttpError"),
    ],
)
async def test_trouble_is_what_it_means_and_quotes_nothing(
    runner: HandlerApp, model: ModelServer, how: str, reply: Reply, kind: str
) -> None:
    model.script[ANSWER] = reply

    async def work(ctx: JobContext) -> str:
        try:
            return await ask(ctx, phases(model)[Phase.ANSWER], how)
        except Exception as error:
            return repr(error)

    done = await runner.run(work, deadline=SOON)  # before that of the 429
    assert str(done.result).startswith(f"{kind}(")
    assert "canary" not in str(done)
    assert len(model.asked()) == 1, "a request to a model is not repeated by itself"


async def test_server_that_ends_a_connection_behind_a_stream_is_asked_over_another(
    runner: HandlerApp, model: ModelServer
) -> None:
    """As llama.cpp's does, which has promised to keep it."""
    model.script[ANSWER] = Reply("one two", leaves=True)
    answer = phases(model)[Phase.ANSWER]
    done = await runner.run(lambda ctx: in_turn(ctx, answer))
    assert done.error is None
    assert done.result == ["one two"] * 2


async def in_turn(ctx: JobContext, model: LanguageModel) -> list[str]:
    return [await ask(ctx, model, "streamed"), await ask(ctx, model, "whole")]


@both
async def test_refusal_for_now_pauses_the_lane(
    runner: HandlerApp, model: ModelServer, how: str
) -> None:
    model.script[ANSWER] = Reply(status=429, retry_after=600)

    async def work(ctx: JobContext) -> None:
        with suppress(RateLimited):
            await ask(ctx, phases(model)[Phase.ANSWER], how)

    assert (await runner.run(work, deadline=SOON)).state is JobState.COMPLETED
    async with runner.app:
        lanes = {lane.name: lane for lane in await runner.app.lane_infos()}
    until_then = lanes["llm.answer"].blocked_until
    assert until_then is not None
    assert until_then > time.time() + 500
