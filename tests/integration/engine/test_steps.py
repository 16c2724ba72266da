"""Steps in handlers: what was recorded is not done again."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.engine.step_call import check_options
from penstock.errors import PenstockError, ValidationError
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0
LONG = 600.0
"""A lease that a machine which stands still does not cost a run: calls are counted here."""


class Work:
    """Functions for steps that count their calls, and a handler's way to fail on purpose."""

    def __init__(self) -> None:
        self.calls: Counter[Any] = Counter()
        self.keys: list[str] = []

    async def double(self, n: int) -> int:
        self.calls[n] += 1
        return 2 * n

    def plain(self, n: int) -> int:
        self.calls[n] += 1
        return 3 * n


async def run(app: Penstock, kind: str, **payload: Any) -> Job:
    job = await app.enqueue(kind, payload)
    return await app.wait(job.id, timeout=SOON)


@pytest.fixture
def work() -> Work:
    return Work()


async def test_a_rerun_takes_the_records(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("sum")
    async def total(ctx: JobContext) -> list[int]:
        found = [await ctx.step("first", work.double, 1), await ctx.step("second", work.plain, 2)]
        found += await asyncio.gather(*(ctx.step(f"n:{n}", work.double, n) for n in (3, 4)))
        if ctx.attempt < 3:
            raise ConnectionError("after all steps")
        return found

    async with app.running():
        job = await run(app, "sum")
        steps = await app.steps(job.id)
    assert job.result == [2, 6, 6, 8]
    assert job.attempts == 3
    assert work.calls == {1: 1, 2: 1, 3: 1, 4: 1}
    assert sorted((s.name, s.result, s.attempts, s.recorded) for s in steps) == [
        ("first", 2, 1, True),
        ("n:3", 6, 1, True),
        ("n:4", 8, 1, True),
        ("second", 6, 1, True),
    ]


async def test_a_step_that_was_not_recorded_is_done_again(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("fragile")
    async def fragile(ctx: JobContext) -> int:
        await ctx.step("before", work.double, 1)

        async def fails_first() -> int:
            work.calls["fails"] += 1
            if ctx.attempt == 1:
                raise ConnectionError("not recorded")
            return 7

        found: int = await ctx.step("fails", fails_first)
        return found

    async with app.running():
        job = await run(app, "fragile")
        steps = {step.name: step for step in await app.steps(job.id)}
    assert job.result == 7
    assert work.calls == {1: 1, "fails": 2}
    assert steps["fails"].attempts == 2


async def test_a_step_is_its_name_its_arguments_and_their_count(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    async def next_call(n: int) -> list[int]:
        work.calls[n] += 1
        return [n, work.calls[n]]

    @app.job("repeat")
    async def repeat(ctx: JobContext) -> list[list[int]]:
        # In another order each time: nobody gets another's record.
        order = (1, 2, 1) if ctx.attempt == 1 else (2, 1, 1)
        found = await asyncio.gather(*(ctx.step("call", next_call, n) for n in order))
        if ctx.attempt == 1:
            raise ConnectionError("again")
        return found

    async with app.running():
        job = await run(app, "repeat")
        steps = await app.steps(job.id)
    assert job.result == [[2, 1], [1, 1], [1, 2]]
    assert sorted(step.occurrence for step in steps) == [1, 1, 2]


@pytest.mark.parametrize("strict", [False, True])
async def test_a_record_of_other_arguments_is_not_used(
    farm: Farm, work: Work, strict: bool
) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("changing", max_retries=1)
    async def changing(ctx: JobContext) -> int:
        found: int = await ctx.step("call", work.double, ctx.attempt, strict=strict)
        if ctx.attempt == 1:
            raise ConnectionError("again, with other arguments")
        return found

    async with app.running():
        job = await run(app, "changing")
    if strict:
        assert job.state is JobState.FAILED
        assert job.error is not None
        assert job.error["type"] == "StepMismatch"
        assert work.calls == {1: 1}
    else:
        assert job.result == 4
        assert work.calls == {1: 1, 2: 1}


async def test_strict_steps_of_one_name_do_not_take_each_other_for_changed(
    farm: Farm, work: Work
) -> None:
    app = farm.bare(lease_seconds=LONG)

    async def fails_once(n: int) -> int:
        work.calls[n] += 1
        if n == 1 and work.calls[n] == 1:
            raise ConnectionError("the other one is recorded meanwhile")
        return n

    @app.job("both")
    async def both(ctx: JobContext) -> list[int]:
        calls = (ctx.step("call", fails_once, n, strict=True) for n in (1, 2))
        found = await asyncio.gather(*calls, return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [one for one in found if isinstance(one, int)]

    async with app.running():
        job = await run(app, "both")
    assert job.result == [1, 2]
    assert work.calls == {1: 2, 2: 1}


async def test_retries_are_spent_in_place(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    async def third_time(limit: int) -> int:
        work.calls["tries"] += 1
        if work.calls["tries"] < limit:
            raise ConnectionError("not yet")
        return work.calls["tries"]

    @app.job("patient")
    async def patient(ctx: JobContext) -> int:
        found: int = await ctx.step("try", third_time, 3, retries=2)
        return found

    async with app.running():
        job = await run(app, "patient")
        (step,) = await app.steps(job.id)
    assert (job.result, job.attempts) == (3, 1)
    assert (step.attempts, step.result) == (3, 3)


async def test_retries_are_not_reset_when_the_run_is_cut_off(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)
    under_way = asyncio.Event()

    async def hangs_the_second_time() -> None:
        work.calls["tries"] += 1
        if work.calls["tries"] == 2:
            under_way.set()
            await asyncio.Event().wait()
        raise ConnectionError("fails")

    @app.job("unlucky", max_retries=0)
    async def unlucky(ctx: JobContext) -> None:
        await ctx.step("try", hangs_the_second_time, retries=2)

    async with app:
        orchestrator = app.orchestrator()
        await orchestrator.start()
        job = await app.enqueue("unlucky")
        await under_way.wait()
        await orchestrator.stop(grace=0)
        async with app.running():
            ended = await app.wait(job.id, timeout=SOON)
        (step,) = await app.steps(job.id)
    assert ended.state is JobState.FAILED
    assert work.calls["tries"] == step.attempts == 3
    assert not step.recorded


async def test_a_permanent_error_is_not_retried(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    async def refuses() -> None:
        work.calls["tries"] += 1
        raise KeyError("no such thing")

    @app.job("pointless", permanent=[KeyError])
    async def pointless(ctx: JobContext) -> None:
        await ctx.step("try", refuses, retries=5)

    async with app.running():
        job = await run(app, "pointless")
    assert job.state is JobState.FAILED
    assert work.calls["tries"] == 1


async def test_a_step_that_takes_too_long_is_cut_off(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    async def hangs_first() -> str:
        work.calls["tries"] += 1
        if work.calls["tries"] == 1:
            await asyncio.Event().wait()
        return "done"

    @app.job("slow", max_retries=0)
    async def slow(ctx: JobContext) -> str:
        try:
            await ctx.step("hang", hangs_first, timeout=0.05)
        except TimeoutError as error:
            said = str(error)
        else:
            raise AssertionError("it was not cut off")
        assert said == "step 'hang' took longer than its timeout of 0.05 s"
        found: str = await ctx.step("hang", hangs_first, timeout=SOON, retries=1)
        return found

    async with app.running():
        assert (await run(app, "slow")).result == "done"


async def test_a_result_is_the_same_from_the_function_and_from_its_record(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    seen: list[Any] = []

    async def loose() -> Any:
        return {1: ("a", None)}

    @app.job("loose")
    async def handler(ctx: JobContext) -> None:
        seen.append(await ctx.step("loose", loose))
        if ctx.attempt == 1:
            raise ConnectionError("again")

    async with app.running():
        await run(app, "loose")
    assert seen == [{"1": ["a", None]}] * 2


async def test_steps_of_a_sync_handler(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)
    threads: list[tuple[int, int]] = []

    @app.job("sync")
    def sync(ctx: JobContext) -> list[int]:
        mine = threading.get_ident()

        def plain(n: int) -> int:
            threads.append((mine, threading.get_ident()))
            work.keys.append(ctx.step_key)
            return work.plain(n)

        found = [
            ctx.step("plain", plain, 1),
            ctx.step("async", work.double, 2),
            ctx.from_thread(ctx.step("wrapped", plain, 3)),
        ]
        if ctx.attempt == 1:
            raise ConnectionError("again")
        return found

    async with app.running():
        job = await run(app, "sync")
    assert job.result == [3, 4, 9]
    assert work.calls == {1: 1, 2: 1, 3: 1}
    assert all(mine == there for mine, there in threads)  # where its connections belong
    assert len(set(work.keys)) == 2


async def test_a_failing_step_of_a_sync_handler_is_retried_and_raised(
    farm: Farm, work: Work
) -> None:
    app = farm.bare(lease_seconds=LONG)

    def fails() -> None:
        work.calls["tries"] += 1
        raise ConnectionError("fails")

    @app.job("sync", max_retries=0)
    def sync(ctx: JobContext) -> str:
        try:
            ctx.step("fails", fails, retries=1)
        except ConnectionError:
            return "raised"
        return "nothing was raised"

    async with app.running():
        assert (await run(app, "sync")).result == "raised"
    assert work.calls["tries"] == 2


async def test_the_key_of_a_step_is_the_same_in_every_run(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("pay")
    async def pay(ctx: JobContext) -> None:
        async def send(amount: int) -> None:
            work.keys.append(ctx.step_key)
            if ctx.attempt == 1:
                raise ConnectionError("sent, but the answer was lost")

        def in_thread() -> None:
            work.keys.append(ctx.step_key)

        with pytest.raises(PenstockError, match="function of a step"):
            _ = ctx.step_key
        sent = (ctx.step("send", send, 5), ctx.step("send", send, 5), ctx.step("log", in_thread))
        for one in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(one, BaseException):
                raise one

    async with app.running():
        job = await run(app, "pay")
        other = await run(app, "pay")
    assert job.state is other.state is JobState.COMPLETED
    # Two runs of each job: both payments in both, the log in the first.
    assert sorted(Counter(work.keys).values()) == [1, 1, 2, 2, 2, 2]
    assert sum(key.startswith(job.id) for key in work.keys) == 5


async def test_a_step_in_a_lane_takes_a_permit_and_its_record_takes_none(
    farm: Farm, work: Work
) -> None:
    app = farm.bare(
        lease_seconds=LONG, lanes={"model": {"requests_per_day": 2, "min_interval_seconds": 0.0}}
    )

    @app.job("ask", max_retries=1)
    async def ask(ctx: JobContext) -> list[int]:
        found = [await ctx.step("ask", work.double, n, lane="model") for n in (1, 2)]
        if ctx.attempt == 1:
            raise ConnectionError("both requests of the day are made")
        return found

    async with app.running():
        job = await run(app, "ask")
        steps = await app.steps(job.id)
    assert job.result == [2, 4]
    assert [step.lane for step in steps] == ["model", "model"]


async def test_another_version_discards_what_was_recorded(farm: Farm, work: Work) -> None:
    ran: list[str | int | None] = []
    job: Job | None = None
    under_way = asyncio.Event()
    # The last but one finds records of its own version, and uses them.
    for version in (None, 1, 2, 2, "three"):
        app = farm.bare(lease_seconds=LONG, retry_base_seconds=600.0)

        @app.job("versioned", version=version, max_retries=9, backoff=0.0)
        async def versioned(ctx: JobContext, version: str | int | None = version) -> None:
            async def note() -> None:
                ran.append(version)

            await ctx.step("note", note)
            under_way.set()
            await asyncio.Event().wait()

        under_way.clear()
        async with app:
            orchestrator = app.orchestrator()
            await orchestrator.start()
            job = job or await app.enqueue("versioned")
            await under_way.wait()
            (step,) = await app.steps(job.id)
            assert step.version == ("" if version is None else str(version))
            await orchestrator.stop(grace=0)
    assert ran == [None, 1, 2, "three"]


async def test_too_many_steps_are_refused(farm: Farm, work: Work) -> None:
    app = farm.bare(lease_seconds=LONG, max_steps=3)

    @app.job("greedy")
    async def greedy(ctx: JobContext, count: int) -> None:
        for n in range(count):
            await ctx.step("call", work.double, n)

    async with app.running():
        enough = await run(app, "greedy", count=3)
        too_many = await run(app, "greedy", count=4)
    assert enough.state is JobState.COMPLETED
    assert too_many.error is not None
    assert too_many.error["type"] == "StepLimit"
    assert "max_steps" in too_many.error["message"]
    assert too_many.attempts == 1


async def test_results_that_take_too_much_are_refused(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG, max_steps_bytes=1000)

    @app.job("large")
    async def large(ctx: JobContext, size: int, times: int) -> None:
        async def text(n: int) -> str:
            return "x" * size

        for n in range(times):
            await ctx.step("text", text, n)

    async with app.running():
        one = await run(app, "large", size=900, times=1)
        two = await run(app, "large", size=900, times=2)
        whole = await run(app, "large", size=1_048_576, times=1)  # in the blob store it counts, too
    assert one.state is JobState.COMPLETED
    assert two.error is not None
    assert (two.error["type"], two.attempts) == ("StepLimit", 1)
    assert "max_steps_bytes" in two.error["message"]
    assert whole.error is not None
    assert whole.error["type"] == "StepLimit"


async def test_what_is_not_json_is_refused(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)

    async def nothing(value: Any = None) -> Any:
        return object()

    @app.job("odd")
    async def odd(ctx: JobContext, what: str) -> None:
        if what == "argument":
            await ctx.step("odd", nothing, object())
        await ctx.step("odd", nothing)

    async with app.running():
        for what in ("argument", "result"):
            job = await run(app, "odd", what=what)
            assert job.error is not None
            assert job.error["type"] == "ValidationError"
            assert f"{what} of step 'odd' is not JSON" in job.error["message"]
            assert job.attempts == 1


@pytest.mark.parametrize(
    ("name", "function", "told"),
    [
        (print, "plan", "the first argument of ctx.step is its name"),
        ("plan", "print", "needs a function to call"),
        ("", print, "the name of a step is a text of 1 to 200 printable characters"),
        ("x" * 201, print, "the name of a step is a text of 1 to 200 printable characters"),
    ],
)
def test_what_is_no_step_is_refused(name: Any, function: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        check_options(name, function, None, 0, None)


async def test_jobs_without_steps_and_first_runs_load_nothing(
    farm: Farm, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("without")
    async def without(ctx: JobContext) -> int:
        if ctx.attempt == 1:
            raise ConnectionError("again")
        return ctx.attempt

    @app.job("first")
    async def first(ctx: JobContext) -> int:
        found: int = await ctx.step("call", work.double, 1)
        return found

    async def refuse(job_id: str) -> None:
        raise AssertionError("nobody has to ask for steps")

    monkeypatch.setattr(app.queue, "steps", refuse)
    async with app.running():
        assert (await run(app, "without")).result == 2
        assert (await run(app, "first")).result == 2


async def test_a_thread_that_outlives_its_run_learns_it_at_its_next_step(
    farm: Farm, work: Work
) -> None:
    app = farm.bare(lease_seconds=LONG, max_workers=2)
    settled = threading.Event()
    raised: list[str] = []

    @app.job("late", max_retries=0, timeout=0.2)
    def late(ctx: JobContext) -> None:
        settled.wait(SOON)
        try:
            ctx.step("late", work.plain, 1)
        except PenstockError as error:
            raised.append(type(error).__name__)

    async with app.running():
        job = await run(app, "late")
        settled.set()
        await until(lambda: bool(raised), "the thread's next step")
    assert job.state is JobState.FAILED
    assert raised == ["LeaseLost"]
    assert work.calls == {}
