"""A question that is given up: at every phase, at once, and for good."""

from __future__ import annotations

import asyncio

import pytest

from penstock.answers.jobs import log_of
from tests.support.answers import QUESTION, SOON, Study, all_told, answered, told
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer, Reply
from tests.support.waiting import until


@pytest.mark.parametrize("name", [PLAN, SEARCH, ANSWER])
async def test_cancel_is_honoured_in_every_phase(
    study: Study, model: ModelServer, name: str
) -> None:
    model.script[name] = Reply(hang=True)
    async with study.running() as app:
        asked = await app.answers.ask(QUESTION)
        await until(lambda: bool(model.asked(name)), "the model is asked")
        cancelled = await app.answers.cancel(asked.id)
        assert cancelled.state == "cancelled"
        await until(lambda: model.asked(name)[0].hit.lost is not None, "the request is ended")
        events = await told(app, asked.id)
        assert (events[-1].what, events[-1].data["state"]) == ("error", "cancelled")
        kinds = await all_told(app, asked.id)
        assert kinds.count("error") + kinds.count("done") == 1
        jobs = await app.jobs(log=log_of(asked.id))
        assert {job.state for job in jobs} <= {"cancelled", "completed"}
        assert (await app.answers.get(asked.id)).answer == cancelled
        # Workers go on.
        model.script[name] = {PLAN: "{}", SEARCH: "{}", ANSWER: "It is water [1]."}[name]
        assert (await answered(app)).state == "completed"


async def test_one_that_is_queued_never_starts(study: Study, model: ModelServer) -> None:
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION)
        await app.answers.cancel(asked.id)
        again = await app.answers.cancel(asked.id)
        assert again.state == "cancelled"
    async with study.running([]) as app:
        assert await all_told(app, asked.id) == ["error"]
    assert model.asked() == []


async def test_one_that_is_over_stays_as_it_is(study: Study) -> None:
    async with study.running() as app:
        answer = await answered(app)
        assert await app.answers.cancel(answer.id) == answer
        assert (await all_told(app, answer.id))[-1] == "done"


async def test_cancel_and_completion_never_both_win(study: Study, model: ModelServer) -> None:
    async with study.running() as app:
        for delay in range(12):
            asked = await app.answers.ask(QUESTION)
            await asyncio.sleep(delay * 0.01)  # somewhere on its way
            cancelled = await app.answers.cancel(asked.id)
            answer = await app.answers.wait(asked.id, timeout=SOON)
            assert answer == cancelled
            kinds = await all_told(app, asked.id)
            assert kinds.count("done") + kinds.count("error") == 1
            assert kinds[-1] == ("done" if answer.state == "completed" else "error")
            assert (await app.answers.get(asked.id)).answer == answer


async def test_who_cancels_and_dies_leaves_no_answer_without_an_end(
    study: Study, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored as cancelled, and nothing else was done: the clock finds it."""
    model.script[PLAN] = Reply(hang=True)

    async def died(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    async with study.running() as app:
        asked = await app.answers.ask(QUESTION, seconds=72.0)  # a sixth of it is for the plan
        await until(lambda: bool(model.asked(PLAN)), "the model is asked")
        with monkeypatch.context() as patched:
            patched.setattr(app.queue, "stop", died)
            with pytest.raises(KeyboardInterrupt):
                await app.answers.cancel(asked.id)
        assert await all_told(app, asked.id) == ["error"]
        assert (await app.answers.get(asked.id)).answer.state == "cancelled"
