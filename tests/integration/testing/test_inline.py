"""Inline mode: `enqueue` runs the handler, as a worker would, in the task of its caller."""

import asyncio

import pytest

from penstock import JobContext, JobFailed, Penstock
from penstock.errors import ConfigError
from penstock.testing import SimulatedProvider, VirtualClock, assert_enqueued, inline
from tests.integration.testing.shop import Paid, charge, here


async def test_a_handler_runs_in_the_task_of_its_caller_and_its_result_is_json(
    penstock_app: Penstock, penstock_provider: SimulatedProvider
) -> None:
    tasks = []

    @penstock_app.job("look")
    async def look(ctx: JobContext) -> str:
        tasks.append(asyncio.current_task())
        return here.get()

    here.set("the test")
    with inline():
        job = await charge.enqueue(order="book")
        assert await job.result() == Paid("book", (1, 0))
        assert (await job.get()).result == {"order": "book", "parts": [1, 0]}
        assert (await penstock_app.enqueue("look")).result == "the test"
        assert (await penstock_app.enqueue("mail", {"to": "a"})).result == "a, from the test"
    assert tasks == [asyncio.current_task()]
    assert [step.name for step in await penstock_app.steps(job.id)] == ["ask", "write"]
    assert (await penstock_app.enqueue("mail", {"to": "b"})).state == "queued"


async def test_what_a_handler_raises_comes_to_the_caller_and_the_job_waits_for_its_retry(
    penstock_app: Penstock,
) -> None:
    with inline():
        with pytest.raises(ConnectionError, match="no"):
            await penstock_app.enqueue("refuse", {"n": 1})
        [job] = assert_enqueued("refuse", state="queued")
        assert (job.attempts, job.error and job.error.type) == (1, "ConnectionError")
        with pytest.raises(JobFailed, match="JobTimeout"):
            await penstock_app.enqueue("hang", timeout=0.02, max_retries=0)


@pytest.fixture(autouse=True)
def _hangs(penstock_app: Penstock) -> None:
    @penstock_app.job("hang")
    async def hang(ctx: JobContext) -> None:
        await asyncio.Event().wait()


async def test_children_run_in_their_parent(penstock_app: Penstock) -> None:
    with inline():
        job = await penstock_app.enqueue("family")
    assert sorted(job.result) == ["a, from nowhere", "b, from nowhere"]
    assert_enqueued("mail", times=2, parent_id=job.id, state="completed")


async def test_what_cannot_start_now_stays_in_the_queue(penstock_app: Penstock) -> None:
    older = await penstock_app.enqueue("mail", {"to": "older"})
    with inline():
        assert (await penstock_app.enqueue("mail", {"to": "a"}, delay=60)).state == "queued"
        assert (await penstock_app.enqueue("remind", {"order": "b"})).waiting_for is not None
        jobs = await penstock_app.enqueue_many("laned", [{}] * 3)
        assert {job.state for job in jobs} == {"completed"}, "each has its slot in its turn"
        await penstock_app.control_lane("narrow", "pause")
        assert (await penstock_app.enqueue("laned")).state == "queued"
        assert (await penstock_app.enqueue("mail", {"to": "b"})).state == "completed"
    assert (await penstock_app.get(older.id)).state == "queued", "it was enqueued before"


async def test_it_is_refused_on_the_virtual_clock(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    with pytest.raises(ConfigError, match="do not go together"), inline():
        raise AssertionError("unreachable")
