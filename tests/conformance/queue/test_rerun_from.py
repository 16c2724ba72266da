"""Reruns from a step: what was recorded before it is taken over by the new job."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import Job, JobContext, Penstock
from penstock.errors import JobNotFound, ValidationError
from penstock.ports.queue import NewJob, NewJobs, TakenOver
from tests.conformance.queue.test_events import app, followed, running  # noqa: F401 (a fixture)
from tests.conformance.support import KIND, Ledger
from tests.support.waiting import PATIENCE

Report = Callable[[], Awaitable[Job]]


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def report(app: Penstock, calls: list[str]) -> Report:  # noqa: F811
    """Run a job of several steps to its end."""

    async def note(what: str) -> str:
        calls.append(what)
        return what

    @app.job(KIND)
    async def handler(ctx: JobContext) -> list[Any]:
        plan = await ctx.step("plan", note, "plan")
        await ctx.emit({"planned": plan})
        read = [await ctx.step("read", note, page) for page in ("a", "b", "b")]
        answer = await ctx.wait_for("go", timeout=0)
        return [plan, *read, answer, await ctx.step("write", note, "write")]

    async def make() -> Job:
        job = await app.enqueue(KIND)
        done = await app.wait(job.id, timeout=PATIENCE)
        assert done.result == ["plan", "a", "b", "b", None, "write"]
        return done

    return make


@pytest.mark.parametrize(
    ("from_step", "done_again"),
    [
        ("plan", ["plan", "a", "b", "b", "write"]),
        ("read", ["a", "b", "b", "write"]),
        ("read#2", ["b", "b", "write"]),
        ("read#3", ["b", "write"]),
        ("wait_for:go", ["write"]),
        ("write", ["write"]),
    ],
)
async def test_only_what_comes_from_the_step_on_is_done_again(
    app: Penstock,  # noqa: F811
    report: Report,
    calls: list[str],
    from_step: str,
    done_again: list[str],
) -> None:
    async with running(app):
        job = await report()
        before = await app.steps(job.id)
        calls.clear()

        again = await app.rerun(job.id, from_step=from_step)

        done = await app.wait(again.id, timeout=PATIENCE)
        assert done.result == job.result
        assert done.rerun_of == job.id
        assert calls == done_again
        assert await app.steps(job.id) == before  # the old one stays as it is
        events = [e.data for e in await followed(app, again.id) if e.kind == "emitted"]
        assert events == [{"planned": "plan"}]  # once, taken over or not


async def test_a_wait_that_is_rerun_waits_anew(
    app: Penstock,  # noqa: F811
    report: Report,
) -> None:
    async with running(app):
        job = await report()
        again = await app.rerun(job.id, from_step="wait_for:go")
        await app.wait(again.id, timeout=PATIENCE)
        old = {step.name: step for step in await app.steps(job.id)}
        new = {step.name: step for step in await app.steps(again.id)}
    for name in ("wait_for:go:until", "wait_for:go"):
        assert new[name].started_at > old[name].started_at


async def test_an_unknown_step_is_refused_with_the_names_there_are(
    app: Penstock,  # noqa: F811
    report: Report,
) -> None:
    async with running(app):
        job = await report()
    for unknown in ("nope", "read#4", "read#0", "", "plan#"):
        with pytest.raises(ValidationError) as refused:
            await app.rerun(job.id, from_step=unknown)
        names = "there are 'plan', 'read', 'wait_for:go', 'write'"
        assert str(refused.value).endswith(names)
    other = await app.enqueue("other")
    with pytest.raises(ValidationError, match="it has recorded none"):
        await app.rerun(other.id, from_step="plan")
    assert [found.id for found in await app.jobs(kind=KIND)] == [job.id]


async def test_records_and_job_are_stored_together_or_not_at_all(ledger: Ledger) -> None:
    queue = await ledger.open()
    item = NewJob("a" * 32, "{}", None, "")
    batch = NewJobs(KIND, [item], records=TakenOver("0" * 32, 10))

    with pytest.raises(JobNotFound):
        await queue.enqueue(batch)

    assert await queue.get([item.id]) == {}


async def test_reruns_of_one_job_do_not_wait_for_each_other(
    app: Penstock,  # noqa: F811
    report: Report,
    calls: list[str],
) -> None:
    async with running(app):
        job = await report()
        calls.clear()
        async with asyncio.timeout(PATIENCE):
            made = await asyncio.gather(*(app.rerun(job, from_step="write") for _ in range(30)))
        done = [await app.wait(one.id, timeout=PATIENCE) for one in made]
    assert all(one.result == job.result for one in done)
    assert calls == ["write"] * 30


async def test_a_rerun_that_was_stored_already_is_given_back(
    app: Penstock,  # noqa: F811
    report: Report,
) -> None:
    async with running(app):
        job = await report()
        for _ in range(2):
            again = await app.rerun(job, job_id="c" * 32, from_step="write")
            done = await app.wait(again.id, timeout=PATIENCE)
            assert (done.id, done.result) == ("c" * 32, job.result)
        assert len(await app.jobs(kind=KIND)) == 2
