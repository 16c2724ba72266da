"""Many questions at once: each phase keeps to its lane, and bulk work does not starve them."""

from __future__ import annotations

import asyncio

import pytest

from penstock import JobContext
from penstock.ports.queue import JobFilter
from tests.support.answers import (
    ENOUGH,
    PLANNED,
    QUESTION,
    QUICK,
    SOON,
    Study,
    add,
    answered,
    citing,
)
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer, Reply

LIMITS = {PLAN: 3, SEARCH: 4, ANSWER: 2}
MANY = 50


@pytest.fixture
def narrow(study: Study, model: ModelServer) -> Study:
    model.script = {
        PLAN: Reply(PLANNED, delay=0.2),
        SEARCH: Reply(ENOUGH, delay=0.1),
        ANSWER: lambda asked: Reply(citing(asked), delay=0.1),
    }
    lanes = study.farm.settings["lanes"]
    for phase, limit in zip(("plan", "search", "answer"), LIMITS.values(), strict=True):
        lanes[f"llm.{phase}"] = {**QUICK, "max_parallel": limit}
    return study


async def test_under_fifty_questions_each_phase_keeps_to_its_lane(
    narrow: Study, model: ModelServer
) -> None:
    async with narrow.running(max_workers=10) as app:
        asked = await asyncio.gather(
            *(app.answers.ask(f"How is overshot wheel {n} turned?") for n in range(MANY))
        )
        answers = await asyncio.gather(*(app.answers.wait(one.id, timeout=100.0) for one in asked))
        assert {(one.state, one.mode, one.notes) for one in answers} == {("completed", "model", ())}
        jobs = await app.jobs(kind="answers.*", limit=1000)
        assert {job.attempts for job in jobs if job.state == "completed"} == {1}
    for name, limit in LIMITS.items():
        assert len(model.asked(name)) == MANY
        assert model.most_at_once(name) <= limit
    written, planned = model.asked(ANSWER), model.asked(PLAN)
    last = max(one.span[1] for one in planned)
    assert min(one.span[0] for one in written) < last, "phases run beside each other"


async def test_phases_that_wait_for_their_lane_keep_no_worker(
    narrow: Study, model: ModelServer
) -> None:
    """All places for answers are taken, and more wait: other jobs run at once."""
    model.script[ANSWER] = Reply(hang=True)
    narrow.farm.settings["max_workers"] = LIMITS[ANSWER] + 1
    app = narrow.farm.app("answering")

    @app.job("noop")
    async def noop(ctx: JobContext) -> None:
        """Needs nothing from anybody."""

    async with app.running():
        await add(app, ["wheel"])
        asked = [await app.answers.ask(QUESTION) for _ in range(6)]
        async with asyncio.timeout(SOON):
            while len(model.asked(ANSWER)) < LIMITS[ANSWER]:
                await app.wait((await app.enqueue("noop")).id, SOON)
        for _ in range(5):
            await app.wait((await app.enqueue("noop", priority="low")).id, SOON)
        assert model.most_at_once(ANSWER) == LIMITS[ANSWER]
        for one in asked:
            await app.answers.cancel(one.id)


async def test_a_question_goes_before_bulk_work(bare_study: Study) -> None:
    app = bare_study.farm.app("answering", max_workers=1)
    done: list[int] = []

    @app.job("bulk")
    async def bulk(ctx: JobContext, number: int) -> None:
        await asyncio.sleep(0.01)
        done.append(number)

    async with app.running():
        await app.enqueue_many("bulk", [{"number": n} for n in range(2000)])
        answer = await answered(app)
        assert answer.state == "completed"
        assert len(done) < 1000
        await app.queue.cancel(JobFilter(kind="bulk"))
