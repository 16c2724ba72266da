"""Whatever a handler does, it is an outcome: the worker lives on and the next job is clean."""

import asyncio
import json
from contextvars import ContextVar
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock, RunLater
from tests.support.apps.raising import PROBLEMS
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0


async def finish(app: Penstock, kind: str, payload: dict[str, Any] | None = None) -> Job:
    return await app.wait((await app.enqueue(kind, payload)).id, timeout=SOON)


@pytest.mark.parametrize("kind", ["raises", "raises_later", "raises_in_thread"])
@pytest.mark.parametrize("problem", PROBLEMS)
async def test_whatever_a_handler_raises_is_an_outcome(farm: Farm, kind: str, problem: str) -> None:
    if problem == "KeyboardInterrupt" and kind != "raises_in_thread":
        pytest.skip("there it may be a person's Ctrl-C, which is meant to end the process")
    async with farm.app("raising") as app:
        # In a process of its own: some of these would take the test run down with them.
        worker = await farm.start("raising", max_workers=1)
        failed = await finish(app, kind, {"problem": problem})
        assert worker.returncode is None, worker.log
        assert (failed.state, failed.attempts) == (JobState.FAILED, 2)
        assert farm.side.runs() == {failed.id: 2}
        assert [record.outcome for record in failed.history] == ["retry", "failed"]
        assert failed.error is not None
        assert len(json.dumps(failed.history)) < 20_000
        # One worker did it all: it is still there, and so are the lists people look at.
        done = await app.enqueue_many("work", [{"n": n} for n in range(10)])
        for n, job in enumerate(done):
            assert (await app.wait(job.id, timeout=SOON)).result == n
        assert [letter.id for letter in await app.dead_letters()] == [failed.id]
        assert len(await app.jobs()) == 11


async def test_a_context_variable_does_not_leak_into_the_next_job(farm: Farm) -> None:
    app = farm.bare(max_workers=1)
    leaked: ContextVar[Any] = ContextVar("leaked", default=None)
    outside: ContextVar[str] = ContextVar("outside", default="default")

    @app.job("sets")
    async def sets(ctx: JobContext, n: int) -> list[Any]:
        before = [leaked.get(), outside.get()]
        leaked.set({"n": n})
        outside.set("changed")
        await asyncio.sleep(0)
        assert leaked.get() == {"n": n}
        if n % 3 == 1:
            raise OSError("also after a failure")
        return before

    @app.job("sets_in_thread")
    def sets_in_thread(ctx: JobContext) -> list[Any]:
        before = [leaked.get(), outside.get()]
        leaked.set("thread")
        return before

    outside.set("from the start")
    async with app, app.running() as orchestrator:
        for n in range(9):
            done = await finish(app, "sets", {"n": n % 3 if n % 3 != 1 else 0})
            assert done.result == [None, "from the start"]
            done = await finish(app, "sets_in_thread")
            assert done.result == [None, "from the start"]
        assert len(orchestrator.workers) == 1
        await app.enqueue("sets", {"n": 1})
        assert (await finish(app, "sets", {"n": 0})).result == [None, "from the start"]


async def test_a_context_variable_that_cannot_be_compared_does_not_end_the_worker(
    farm: Farm,
) -> None:
    class Array:
        """Compares like a numpy array: not to a bool."""

        def __eq__(self, other: object) -> Any:
            raise ValueError("the truth value of an array is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    app = farm.bare(max_workers=1)
    current: ContextVar[Array] = ContextVar("current")

    @app.job("sets")
    async def sets(ctx: JobContext) -> str:
        current.set(Array())
        return "done"

    current.set(Array())
    async with app, app.running():
        for _ in range(3):
            assert (await finish(app, "sets")).result == "done"


CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (object(), "PermanentError", "result is not JSON"),
        ([{"a": object()}], "PermanentError", "result is not JSON: [0].a is of type object"),
        (b"bytes", "PermanentError", "result is not JSON"),
        (float("nan"), "PermanentError", "result is not JSON"),
        ("\ud800", "PermanentError", "result is not JSON"),
        ({(1, 2): "pair"}, "PermanentError", "a key of it is of type tuple"),
        (CIRCULAR, "PermanentError", "result is not JSON"),
        ("x" * (1024 * 1024), "ResultTooLarge", "the limit is 1,048,576"),
        (["한글" * 300_000], "ResultTooLarge", "the limit is 1,048,576"),
    ],
    ids=["object", "place", "bytes", "nan", "surrogate", "keys", "circular", "huge", "wide"],
)
async def test_a_result_that_cannot_be_stored_fails_for_good_and_says_why(
    farm: Farm, result: Any, error: str, message: str
) -> None:
    app = farm.bare(max_workers=1)
    runs = 0

    @app.job("returns")
    async def returns(ctx: JobContext) -> Any:
        nonlocal runs
        runs += 1
        return result

    @app.job("work")
    async def work(ctx: JobContext) -> str:
        return "done"

    async with app, app.running():
        failed = await finish(app, "returns")
        assert (await finish(app, "work")).result == "done"
    assert runs == 1
    assert (failed.state, failed.attempts, failed.result) == (JobState.FAILED, 1, None)
    assert failed.error is not None
    assert (failed.error.type, failed.error.retryable) == (error, False)
    assert message in failed.error.message


@pytest.mark.parametrize(
    "result",
    [
        None,
        0,
        "",
        [],
        {"nested": {"list": [1, 2.5, None, True, "\x00", '"', "한글 🚰"]}},
        "x" * (1024 * 1024 - 2),
    ],
    ids=["null", "zero", "empty", "list", "nested", "largest"],
)
async def test_a_result_comes_back_as_it_was(farm: Farm, result: Any) -> None:
    app = farm.bare()

    @app.job("returns")
    async def returns(ctx: JobContext) -> Any:
        return result

    async with app, app.running():
        done = await finish(app, "returns")
        assert (done.state, done.result) == (JobState.COMPLETED, result)
        assert type(done.result) is type(result)


@pytest.mark.parametrize("text", ["\udcff", "a\x00b", "한글", "'; DROP TABLE jobs; --", "x" * 9999])
async def test_progress_and_reasons_of_any_text_can_be_stored_and_read(
    farm: Farm, text: str
) -> None:
    app = farm.bare(progress_seconds=0.01)
    runs = 0

    async def told() -> bool:
        return "progress" in [change.what for change in await app.changes("log")]

    @app.job("talks")
    async def talks(ctx: JobContext) -> str:
        nonlocal runs
        runs += 1
        await ctx.progress(0.5, text)
        await until(told, "the log to tell of it")
        if runs == 1:
            raise RunLater(0.01, text)
        return "done"

    async with app, app.running():
        job = await app.enqueue("talks", log="log")
        assert (await app.wait(job.id, timeout=SOON)).result == "done"
        assert [found.id for found in await app.jobs()] == [job.id]
        whats = [change.what for change in await app.changes("log")]
        assert whats[0] == "queued"
        assert whats[-1] == "completed"
        assert "progress" in whats
        assert "released" in whats


async def test_a_payload_that_does_not_fit_fails_for_good_where_the_kind_was_unknown(
    farm: Farm,
) -> None:
    app = farm.bare()

    @app.job("typed")
    async def typed(ctx: JobContext, n: int) -> int:
        return n

    async with farm.bare() as stranger, app:
        wrong: list[dict[str, Any] | None] = [{"n": "seven"}, {}, {"n": 1, "m": 2}, {"n": None}]
        jobs = await stranger.enqueue_many("typed", wrong)
        right = await stranger.enqueue("typed", {"n": 7})
        async with app.running():
            for job in jobs:
                failed = await app.wait(job.id, timeout=SOON)
                assert (failed.state, failed.attempts) == (JobState.FAILED, 1)
                assert failed.error is not None
                assert failed.error.type == "ValidationError"
                assert "typed(n" in failed.error.message
            assert (await app.wait(right.id, timeout=SOON)).result == 7


async def test_a_handler_may_use_task_groups_timeouts_and_its_own_cancellation(farm: Farm) -> None:
    app = farm.bare(max_workers=1)

    @app.job("structured", max_retries=0)
    async def structured(ctx: JobContext, fail: bool = False) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            pass
        inner = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        inner.cancel()
        await asyncio.gather(inner, return_exceptions=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            if fail:
                raise OSError("inside a group")
        return "done"

    async with app, app.running():
        assert (await finish(app, "structured")).result == "done"
        failed = await finish(app, "structured", {"fail": True})
        assert failed.state is JobState.FAILED
        assert failed.error is not None
        assert failed.error.type == "ExceptionGroup"
        assert (await finish(app, "structured")).result == "done"
