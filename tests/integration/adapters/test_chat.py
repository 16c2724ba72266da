"""Language models, asked by real jobs: what they are sent, with which key, and in which lane."""

import asyncio
import logging

import pytest

from penstock import JobContext, JobState
from penstock.model.answer import Phase
from penstock.model.lane import LaneConfig
from tests.support.handler_app import SOON, HandlerApp, error_of
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer, Reply
from tests.support.phase_models import LANES, QUESTION, ask, phases
from tests.support.waiting import until
from tests.support.worker_processes import Farm

KEY = "sk-canary-1234567890"


both = pytest.mark.parametrize("how", ["whole", "streamed"])


@pytest.fixture
def runner(farm: Farm) -> HandlerApp:
    return HandlerApp(farm, lanes=LANES)


@both
async def test_model_is_asked_plainly(runner: HandlerApp, model: ModelServer, how: str) -> None:
    model.script[PLAN] = "A pipe  to the\n turbine. "
    done = await runner.run(lambda ctx: ask(ctx, phases(model)[Phase.PLAN], how))
    assert done.result == "A pipe  to the\n turbine. "
    (asked,) = model.asked()
    assert asked.key == ""
    streams = {"stream": True} if how == "streamed" else {}
    assert asked.body == {
        "model": PLAN,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is a penstock?"},
        ],
        "temperature": 0,
        "max_tokens": 100,
        **streams,
    }


async def test_model_that_thinks_first_is_told_how_much(
    runner: HandlerApp, model: ModelServer
) -> None:
    async def work(ctx: JobContext) -> None:
        answer = phases(model, reasoning=True)[Phase.ANSWER]
        await answer.complete(ctx, QUESTION, most=100, effort="medium")

    assert (await runner.run(work)).state is JobState.COMPLETED
    (asked,) = model.asked()
    del asked.body["messages"]
    wanted = {"reasoning_effort": "medium", "max_completion_tokens": 100}
    assert asked.body == {"model": ANSWER, **wanted}


@both
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_key_is_sent_and_seen_nowhere_else(
    farm: Farm,
    runner: HandlerApp,
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: str,
    status: int,
) -> None:
    monkeypatch.setenv("LLM_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    model.script[ANSWER] = [Reply(KEY, status=status, retry_after=1), "OK."]
    answer = phases(model, key_variable="LLM_KEY")[Phase.ANSWER]

    async def work(ctx: JobContext) -> int:
        return len(await ask(ctx, answer, how))

    done = await runner.run(work)
    assert {one.key for one in model.asked()} == {KEY}
    assert (done.state is JobState.COMPLETED) == (status in (200, 429))
    assert KEY not in str(done)
    assert KEY not in caplog.text
    files = [path for path in farm.folder.rglob("*") if path.is_file()]
    assert files
    assert not any(KEY.encode() in path.read_bytes() for path in files)


@both
async def test_password_in_the_address_is_in_no_error(
    runner: HandlerApp, model: ModelServer, how: str
) -> None:
    url = model.url("/v1").replace("//", "//me:s3cret@")
    answer = phases(model, base_url=url)[Phase.ANSWER]
    model.down()
    done = await runner.run(lambda ctx: ask(ctx, answer, how))
    assert error_of(done)[0] == "Unavailable"
    assert "s3cret" not in str(done)


@both
async def test_missing_key_is_said_before_anything_is_asked(
    runner: HandlerApp, model: ModelServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.delenv("LLM_KEY", raising=False)
    answer = phases(model, key_variable="LLM_KEY")[Phase.ANSWER]
    done = await runner.run(lambda ctx: ask(ctx, answer, how))
    assert error_of(done) == ("ConfigError", "set LLM_KEY to the key of the language model")
    assert model.asked() == []


@pytest.mark.alone
@both
async def test_fifty_at_once_are_never_more_than_the_lane_takes(
    farm: Farm, model: ModelServer, how: str
) -> None:
    lanes = {**LANES, "llm.search": LaneConfig(min_interval_seconds=0.0, max_parallel=3)}
    runner = HandlerApp(farm, lanes=lanes, max_workers=50)
    model.script[SEARCH] = Reply("one two three", delay=0.1, pause=0.01)
    search = phases(model)[Phase.SEARCH]
    runner.register(lambda ctx: ask(ctx, search, how), lane=None)
    async with runner.app, runner.app.running():
        jobs = await asyncio.gather(*(runner.app.enqueue("work") for _ in range(50)))
        done = [await runner.app.wait(job.id, timeout=60) for job in jobs]
    assert {job.result for job in done} == {"one two three"}
    assert len(model.asked(SEARCH)) == 50
    assert model.most_at_once(SEARCH) == 3


async def test_phases_do_not_wait_for_each_other(farm: Farm, model: ModelServer) -> None:
    """Also on one server: while every place of one is taken, the others are answered."""
    lanes = {
        **LANES,
        "llm.answer": LaneConfig(min_interval_seconds=0.0, max_parallel=1, parent="llm"),
    }
    runner = HandlerApp(farm, lanes=lanes)
    model.script[ANSWER] = Reply("one two", stall_after=1)
    models = phases(model)
    hung = asyncio.Event()

    async def work(ctx: JobContext) -> str:
        if not hung.is_set():
            hung.set()
            return await ask(ctx, models[Phase.ANSWER], "streamed")
        return await ask(ctx, models[Phase.PLAN], "whole")

    runner.register(work, lane=None)
    async with runner.app, runner.app.running():
        first = await runner.app.enqueue("work")
        await until(lambda: model.asked(ANSWER), "the long answer")
        second = await runner.app.enqueue("work")
        assert (await runner.app.wait(second.id, timeout=SOON)).result == "OK."
        await runner.app.cancel(first.id)
