"""Receipts: what a call of a job was answered is not asked again by its reruns."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.adapters.models.chat import open_models
from penstock.errors import CutShort
from penstock.model.answer import Phase
from penstock.model.lane import LaneConfig
from penstock.model.llm import LlmConfig, ModelConfig
from penstock.model.step import Step
from penstock.types import ReceiptDetails
from tests.support.counting_server import Answer, CountingServer
from tests.support.handler_app import FREE
from tests.support.model_server import ANSWER, ModelServer, Reply, Turn
from tests.support.phase_models import LANES, QUESTION, phases, streamed
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0
LONG = 600.0
"""A lease that a machine which stands still does not cost a run: requests are counted here."""
LANES_HERE = {"host:*": FREE, "narrow": LaneConfig(min_interval_seconds=0.0, max_parallel=1)}


@pytest.fixture
async def app(farm: Farm) -> AsyncIterator[Penstock]:
    async with farm.bare(lease_seconds=LONG, lanes=LANES | LANES_HERE) as app:
        yield app


async def run(app: Penstock, kind: str = "work", **payload: Any) -> Job:
    async with app.running():
        job = await app.enqueue(kind, payload)
        return await app.wait(job.id, timeout=SOON)


def told(step: Step) -> ReceiptDetails:
    assert step.kind == "receipt"
    assert step.receipt is not None
    return step.receipt


class Once:
    """True the first time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __bool__(self) -> bool:
        self.asked += 1
        return self.asked == 1


@pytest.mark.parametrize(
    "body", [b'{"n": 1}', "Größe".encode(), b"\xff\x00raw"], ids=["json", "text", "bytes"]
)
async def test_a_released_job_takes_the_answer_from_its_receipt(
    app: Penstock, server: CountingServer, body: bytes
) -> None:
    headers = {"content-type": "application/json", "set-cookie": "session=1", "x-kept": "ja"}
    server.answers["/a"] = Answer(headers=headers, body=body)
    first, seen = Once(), list[Any]()

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        response = await ctx.http.get(server.url("/a"), record=True, params={"q": "x"})
        kept = response.headers["x-kept"], response.headers["content-type"]
        seen.append((response.status_code, response.content, *kept, str(response.url)))
        if first:
            ctx.run_later(0.0)

    job = await run(app)
    assert job.state is JobState.COMPLETED
    assert len(server.at("/a")) == 1
    assert len(seen) == 2
    assert seen[0][:4] == seen[1][:4] == (200, body, "ja", "application/json")
    (step,) = await app.steps(job.id)
    assert step.lane == step.name == "host:127.0.0.1"
    assert "session" not in str(step.result)
    details = told(step)
    assert details.parameters == {"method": "GET", "host": "127.0.0.1", "status": 200}
    assert details.seconds is not None
    assert (details.price, details.tokens_in, details.void) == (None, None, False)


async def test_without_record_there_is_no_receipt_and_nothing_is_read(
    app: Penstock, server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Once()

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/a"))
        if first:
            ctx.run_later(0.0)

    async def refuse(*_: object) -> None:
        raise AssertionError("a job without recorded calls pays nothing")

    monkeypatch.setattr(app.queue, "secret", refuse)
    steps = app.queue.steps
    monkeypatch.setattr(app.queue, "steps", refuse)
    job = await run(app)
    assert job.state is JobState.COMPLETED
    assert len(server.at("/a")) == 2
    assert await steps(job.id) == []


async def test_what_a_failed_attempt_was_answered_is_asked_anew_and_stays_in_the_history(
    app: Penstock, server: CountingServer
) -> None:
    server.answers["/a"] = Answer(body=b"malformed")

    @app.job("work", max_retries=3)
    async def work(ctx: JobContext) -> Any:
        response = await ctx.http.get(server.url("/a"), record=True)
        if ctx.attempt == 2:
            server.answers["/a"] = Answer(body=b"[3]")
        return response.json()

    job = await run(app)
    assert (job.result, job.attempts) == ([3], 3)
    assert len(server.at("/a")) == 3
    steps = await app.steps(job.id)
    assert [(step.occurrence, told(step).void) for step in steps] == [
        (1, True),
        (2, True),
        (3, False),
    ]
    assert [step.result["text"] for step in steps] == ["malformed", "malformed", "[3]"]


async def test_a_receipt_that_was_taken_and_then_failed_is_void_as_well(
    app: Penstock, server: CountingServer
) -> None:
    first, second = Once(), Once()

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/a"), record=True)
        if first:
            ctx.run_later(0.0)
        if second:
            raise ConnectionError("what it was answered is of no use")

    job = await run(app)
    assert (job.state, job.attempts) == (JobState.COMPLETED, 2)
    assert len(server.at("/a")) == 2


async def test_a_recorded_step_keeps_the_receipts_before_it(
    app: Penstock, server: CountingServer
) -> None:
    async def note() -> str:
        return "noted"

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/before"), record=True)
        await ctx.step("note", note)
        await ctx.http.get(server.url("/after"), record=True)
        if ctx.attempt == 1:
            raise ConnectionError("after both")

    job = await run(app)
    assert job.attempts == 2
    assert len(server.at("/before")) == 1
    assert len(server.at("/after")) == 2


async def test_a_step_that_raises_asks_anew_and_its_siblings_do_not(
    app: Penstock, server: CountingServer
) -> None:
    ends = asyncio.Event()

    @app.job("work")
    async def work(ctx: JobContext) -> int:
        async def ask(path: str) -> str:
            response = await ctx.http.get(server.url(path), record=True)
            if path == "/bad" and len(server.at(path)) == 1:
                raise ConnectionError("malformed")
            if path == "/good":
                if ctx.token == 1:
                    ends.set()
                    await asyncio.Event().wait()
                return response.text
            return response.text

        await asyncio.gather(
            ctx.step("bad", ask, "/bad", retries=1), ctx.step("good", ask, "/good")
        )
        return len(server.hits)

    orchestrator = app.orchestrator()
    await orchestrator.start()
    job = await app.enqueue("work")
    await ends.wait()

    async def tried_again() -> bool:
        return any(step.name == "bad" and step.recorded for step in await app.steps(job.id))

    await until(tried_again, "the step is tried again")
    await orchestrator.stop(grace=0)
    async with app.running():
        done = await app.wait(job.id, timeout=SOON)
    assert done.result == 3
    assert (len(server.at("/bad")), len(server.at("/good"))) == (2, 1)


async def test_equal_requests_of_a_run_are_receipts_of_their_own(
    app: Penstock, server: CountingServer
) -> None:
    first = Once()

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        asked = [ctx.http.get(server.url("/a"), record=True) for _ in range(3)]
        await asyncio.gather(*asked)
        if first:
            ctx.run_later(0.0)

    job = await run(app)
    assert len(server.at("/a")) == 3
    assert sorted(step.occurrence for step in await app.steps(job.id)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"json": {"prompt": "another"}}, 2),
        ({"params": {"q": "another"}}, 2),
        ({"headers": {"accept-language": "de"}}, 2),
        ({"headers": {"authorization": "Bearer the second"}}, 1),
        ({"headers": {"x-api-key": "the second"}}, 1),
        ({"auth": ("user", "the second")}, 1),
        ({"cookies": {"session": "the second"}}, 1),
    ],
    ids=str,
)
async def test_a_changed_request_is_asked_anew_and_changed_credentials_are_not(
    app: Penstock, server: CountingServer, change: dict[str, Any], asked: int
) -> None:
    first = Once()

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        options = {"json": {"prompt": "one"}, "headers": {"authorization": "Bearer first"}}
        changed = options if first else options | change
        await ctx.http.post(server.url("/a"), record=True, **changed)
        if first.asked == 1:
            ctx.run_later(0.0)

    job = await run(app)
    assert len(server.at("/a")) == asked
    assert "the second" not in str(await app.steps(job.id))


async def test_a_receipt_needs_no_permit(farm: Farm, server: CountingServer) -> None:
    lanes = {"model": {"requests_per_day": 2, "min_interval_seconds": 0.0}}
    app = farm.bare(lease_seconds=LONG, lanes=lanes)
    first = Once()

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        for n in (1, 2):
            await ctx.http.get(server.url(f"/{n}"), lane="model", record=True)
        if first:
            ctx.run_later(0.0)

    assert (await run(app)).state is JobState.COMPLETED
    assert len(server.hits) == 2


async def test_an_error_leaves_no_receipt(app: Penstock, server: CountingServer) -> None:
    first = Once()
    server.answers["/a"] = Answer(404)

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        try:
            await ctx.http.get(server.url("/a"), record=True)
        except Exception:
            assert first
            server.answers["/a"] = Answer()
            ctx.run_later(0.0)

    job = await run(app)
    assert job.state is JobState.COMPLETED
    (step,) = await app.steps(job.id)
    assert told(step).parameters["status"] == 200


async def test_an_answer_that_is_too_large_is_told_and_asked_again(
    app: Penstock, server: CountingServer
) -> None:
    first = Once()
    server.answers["/a"] = Answer(body=b"x" * (1 << 20))

    @app.job("work")
    async def work(ctx: JobContext) -> int:
        response = await ctx.http.get(server.url("/a"), record=True)
        if first:
            ctx.run_later(0.0)
        return len(response.content)

    job = await run(app)
    assert job.result == 1 << 20
    assert len(server.at("/a")) == 2
    (step,) = await app.steps(job.id)
    assert (told(step).too_large, step.result) == (True, None)


async def test_receipts_count_toward_the_bytes_and_the_number_of_records(
    farm: Farm, server: CountingServer
) -> None:
    app = farm.bare(lease_seconds=LONG, max_steps=3, max_steps_bytes=1500)
    server.answers["/"] = Answer(body=b"x" * 1000)

    @app.job("work", max_retries=0)
    async def work(ctx: JobContext, count: int) -> None:
        for n in range(count):
            await ctx.http.get(server.url(f"/{n}"), record=True)

    async with app.running():
        jobs = [await app.enqueue("work", {"count": count}) for count in (3, 4)]
        enough, many = [await app.wait(job.id, timeout=SOON) for job in jobs]
        steps = await app.steps(enough.id)
    assert enough.state is JobState.COMPLETED
    assert [told(step).too_large for step in steps] == [False, True, True]
    assert many.error is not None
    assert many.error["type"] == "StepLimit"
    assert len(server.hits) == 6


async def test_requests_of_a_sync_handler(app: Penstock, server: CountingServer) -> None:
    first = Once()

    @app.job("work")
    def work(ctx: JobContext) -> str:
        response = ctx.from_thread(ctx.http.get(server.url("/a"), record=True))
        if first:
            ctx.run_later(0.0)
        return str(response.text)

    assert (await run(app)).result == "{}"
    assert len(server.at("/a")) == 1


async def test_another_version_of_the_handler_drops_receipts(
    farm: Farm, server: CountingServer
) -> None:
    job: Job | None = None
    for version in (1, 2):
        app = farm.bare(lease_seconds=LONG)

        @app.job("work", version=version)
        async def work(ctx: JobContext, version: int = version) -> int:
            await ctx.http.get(server.url("/a"), record=True)
            if version == 1:
                ctx.run_later(600.0)
            return version

        async with app.running():
            job = job or await app.enqueue("work")
            if version == 1:
                await until(lambda: bool(server.hits), "it is asked")
            else:
                farm.execute("UPDATE jobs SET run_at = 0, ready = 1")
                await app.wait(job.id, timeout=SOON)
    assert len(server.at("/a")) == 2


# Language models


async def test_a_model_is_not_asked_again_and_its_receipt_tells_what_it_took(
    app: Penstock, model: ModelServer
) -> None:
    first, seen = Once(), list[str]()
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "cost": 0.0125}
    said = {"choices": [{"message": {"content": "Because."}, "finish_reason": "stop"}]}
    model.script[ANSWER] = Reply(raw=json.dumps(said | {"usage": usage}).encode())

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        answer = phases(model)[Phase.ANSWER]
        seen.append(await answer.complete(ctx, QUESTION, most=100))
        if first:
            ctx.run_later(0.0)

    job = await run(app)
    assert seen == ["Because."] * 2
    assert len(model.asked()) == 1
    (step,) = await app.steps(job.id)
    details = told(step)
    assert (step.name, step.lane, details.model) == ("llm.answer", "llm.answer", ANSWER)
    assert details.parameters == {"temperature": 0, "max_tokens": 100}
    assert (details.tokens_in, details.tokens_out, details.price) == (12, 3, 0.0125)
    assert "penstock" not in str(step)  # what was asked


async def test_a_streamed_answer_comes_whole_from_its_receipt(
    app: Penstock, model: ModelServer
) -> None:
    first, seen = Once(), list[list[str]]()
    model.script[ANSWER] = "one two three"

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        seen.append([])
        await streamed(phases(model)[Phase.ANSWER], ctx, seen[-1])
        if first:
            ctx.run_later(0.0)

    await run(app)
    assert "".join(seen[0]) == "one two three"
    assert len(seen[0]) > 1
    assert seen[1] == ["one two three"]
    assert len(model.asked()) == 1


async def test_a_streamed_answer_that_was_cut_short_is_so_from_its_receipt(
    app: Penstock, model: ModelServer
) -> None:
    first, seen = Once(), list[str]()
    model.script[ANSWER] = Reply("one two", finish="length")

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        into: list[str] = []
        with pytest.raises(CutShort, match="cut short"):
            await streamed(phases(model)[Phase.ANSWER], ctx, into)
        seen.append("".join(into))
        if first:
            ctx.run_later(0.0)

    await run(app)
    assert seen == ["one two"] * 2
    assert len(model.asked()) == 1


async def test_what_broke_off_or_is_no_answer_leaves_no_receipt(
    app: Penstock, model: ModelServer
) -> None:
    replies: list[Turn] = [
        Reply("one two three", cut_after=1),
        Reply(raw=b"nonsense"),
        "one two three",
    ]
    model.script[ANSWER] = replies

    @app.job("work", max_retries=5)
    async def work(ctx: JobContext) -> str:
        return await streamed(phases(model)[Phase.ANSWER], ctx, [])

    job = await run(app)
    assert job.result == "one two three"
    assert len(model.asked()) == 3
    (step,) = await app.steps(job.id)
    assert step.result["text"] == "one two three"


async def test_what_a_model_says_is_masked_before_it_is_recorded(
    app: Penstock, model: ModelServer
) -> None:
    async def mask(texts: Sequence[str]) -> list[str]:
        return [text.replace("ann@example.org", "[EMAIL]") for text in texts]

    model.script[ANSWER] = '{"to": "ann\\u0040example.org", "said": "\\u0022 \\\\u0040"}'
    config = LlmConfig(base_url=model.url("/v1"), models={"answer": ModelConfig(ANSWER)})

    @app.job("work")
    async def work(ctx: JobContext) -> str:
        answer = open_models(config, mask)[Phase.ANSWER]
        return await answer.complete(ctx, QUESTION, most=100)

    job = await run(app)
    masked = '{"to": "[EMAIL]", "said": "\\u0022 \\\\u0040"}'
    assert job.result == masked
    assert [step.result for step in await app.steps(job.id)] == [{"text": masked}]


async def test_a_job_that_a_busy_lane_releases_goes_on_where_it_was(
    app: Penstock, server: CountingServer
) -> None:
    busy, free = asyncio.Event(), asyncio.Event()

    @app.job("holder")
    async def holder(ctx: JobContext) -> None:
        async with ctx.lanes.permit("narrow"):
            busy.set()
            await free.wait()

    @app.job("work")
    async def work(ctx: JobContext) -> int:
        await ctx.http.get(server.url("/a"), lane="api", record=True)
        await ctx.http.get(server.url("/b"), lane="narrow", record=True, patience=0.0)
        return ctx.attempt

    async def released() -> bool:
        return (await app.get(job.id)).releases > 0

    async with app.running():
        await app.enqueue("holder")
        await busy.wait()
        job = await app.enqueue("work")
        await until(released, "it is released")
        free.set()
        done = await app.wait(job.id, timeout=SOON)
    assert (done.state, done.result) == (JobState.COMPLETED, 1)
    assert (len(server.at("/a")), len(server.at("/b"))) == (1, 1)
