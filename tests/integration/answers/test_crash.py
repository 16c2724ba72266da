"""Answers while processes die: what was asked is answered, and its end is told once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.answers import QUESTION, SOON, Study, all_told, check_citations, told
from tests.support.document_app import STORES, Shelf
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer, Reply
from tests.support.waiting import until


@pytest.mark.parametrize("name", [PLAN, SEARCH, ANSWER])
async def test_killed_while_a_model_is_asked_the_answer_is_given(
    study: Study, model: ModelServer, name: str
) -> None:
    await study.filled()
    done = model.script[name]
    model.script[name] = Reply(hang=True)
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION)
        first = await study.farm.start("answering")
        await until(lambda: bool(model.asked(name)), "the model is asked")
        await first.kill()
        model.script[name] = done
        await study.farm.start("answering")
        answer = await app.answers.wait(asked.id, timeout=SOON)
        assert (answer.state, answer.mode, answer.notes) == ("completed", "model", ())
        check_citations(answer)
        kinds = await all_told(app, asked.id)
        assert kinds.count("done") == 1
        assert "error" not in kinds
        assert [turn.number for turn in answer.rounds] == [1]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("save", [1, 2, 3, 4])
async def test_killed_around_each_save_the_answer_is_given(
    study: Study, model: ModelServer, when: str, save: int
) -> None:
    await study.filled()
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION)
        first = await study.farm.start("answering", die=f"{when} {save}")
        assert await first.exit(SOON) == -9
        await study.farm.start("answering")
        answer = await app.answers.wait(asked.id, timeout=SOON)
        assert (answer.state, answer.mode, answer.notes) == ("completed", "model", ())
        assert [turn.number for turn in answer.rounds] == [1]
        check_citations(answer)
        kinds = await all_told(app, asked.id)
        assert kinds.count("done") == 1
        assert kinds[-1] == "done"
    assert {name: len(model.asked(name)) for name in (PLAN, SEARCH, ANSWER)} == {
        PLAN: 1,
        SEARCH: 1,
        ANSWER: 1,
    }


@pytest.mark.parametrize("store", STORES)
async def test_killed_while_it_writes_the_text_starts_anew(
    shelf_of: Callable[[str], Shelf], model: ModelServer, store: str
) -> None:
    study = Study(shelf_of(store), model)
    await study.filled()
    text = "Water turns it [1]. And so it goes [1]. " * 10
    model.script[ANSWER] = Reply(text, pause=0.1, stall_after=80)
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION)
        first = await study.farm.start("answering")

        async def begun() -> bool:
            return any(one.what == "token" for one in await app.answers.events(asked.id))

        await until(begun, "something is told")
        await first.kill()
        model.script[ANSWER] = "It is the weight of water [1]."
        await study.farm.start("answering")
        events = await told(app, asked.id)
        writing = [one for one in events if one.what == "writing"]
        assert len(writing) == 2
        newest = [
            one.data["text"]
            for one in events
            if one.what == "token" and one.version > writing[-1].version
        ]
        answer = (await app.answers.get(asked.id)).answer
        assert "".join(newest) == answer.text == "It is the weight of water [1]."
        assert (await all_told(app, asked.id)).count("done") == 1


async def test_a_worker_that_is_stopped_hands_its_answers_on(
    study: Study, model: ModelServer
) -> None:
    await study.filled()
    model.script[SEARCH] = Reply(hang=True)
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION)
        async with study.farm.app("answering", grace_seconds=0.1).running():
            await until(lambda: bool(model.asked(SEARCH)), "the model is asked")
        model.script[SEARCH] = '{"enough": true}'
        await study.farm.start("answering")
        answer = await app.answers.wait(asked.id, timeout=SOON)
        assert (answer.state, answer.mode) == ("completed", "model")
        assert (await all_told(app, asked.id)).count("done") == 1
