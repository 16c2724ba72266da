"""What every store promises of answers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from penstock.adapters.sql.answers import AnswerStore
from penstock.model.answer import Answer, AnswerState, Citation, Phase, Plan, Sources
from tests.conformance.answer_support import (
    NOW,
    TENANT,
    a_round,
    an_answer,
    answers_at,
    new_answer,
    saved,
)

DIRTY, CLEAN = "a\x00b\ud800c", "a\N{REPLACEMENT CHARACTER}b?c"
"""Text that not every store takes, and what is stored of it."""


@pytest.fixture
async def answers(store_name: str, url: str) -> AsyncIterator[AnswerStore]:
    async with answers_at(store_name, url) as answers:
        yield answers


@pytest.fixture
async def elsewhere(store_name: str, url: str, answers: AnswerStore) -> AsyncIterator[AnswerStore]:
    """The same store, as another process has it."""
    async with answers_at(store_name, url) as elsewhere:
        yield elsewhere


def whole(answer: Answer) -> Answer:
    """With something in every part of it."""
    return replace(
        answer,
        state=AnswerState.COMPLETED,
        phase=Phase.DONE,
        plan=Plan(("wheel", "mill"), "who and when"),
        rounds=(a_round(1), replace(a_round(2), note="odd", enough=True, evidence=())),
        text="It turns [1]. So there.",
        citations=(Citation(1, 9, 12),),
        unsupported=((14, 23),),
        missing=("who built it",),
        mode="model",
        notes=("time was up",),
        models={"plan": "small", "answer": "large"},
        task="t1",
        finished_at=NOW + 5,
    )


async def test_an_answer_is_created_once_and_given_back_as_it_is(answers: AnswerStore) -> None:
    answer = an_answer(sources=Sources.WEB, collections=("a", "b"))
    assert await answers.create(answer) == answer
    assert await answers.create(replace(answer, question="other?")) == answer
    assert await answers.get(TENANT, answer.id) == answer
    assert await answers.get(TENANT, "none") is None


async def test_all_of_an_answer_is_kept(answers: AnswerStore, elsewhere: AnswerStore) -> None:
    answer = await new_answer(answers)
    after = await saved(answers, whole(answer))
    assert after == replace(whole(answer), saves=1)
    assert await elsewhere.get(TENANT, answer.id) == after


async def test_an_answer_that_is_over_is_never_changed_again(answers: AnswerStore) -> None:
    for state in (AnswerState.COMPLETED, AnswerState.FAILED, AnswerState.CANCELLED):
        over = await saved(answers, replace(await new_answer(answers), state=state))
        assert await answers.save(replace(over, text="more")) is None
        assert await answers.create(replace(over, state=AnswerState.RUNNING)) == over
        assert await answers.get(TENANT, over.id) == over


async def test_who_has_not_seen_the_last_save_changes_nothing(
    answers: AnswerStore, elsewhere: AnswerStore
) -> None:
    answer = await new_answer(answers)
    planned = await saved(answers, replace(answer, phase=Phase.SEARCH, plan=Plan(("q",))))
    assert await elsewhere.save(replace(answer, plan=Plan(("late",)))) is None
    assert await answers.get(TENANT, answer.id) == planned
    await saved(elsewhere, replace(planned, rounds=(a_round(1),)))
    assert await answers.save(replace(planned, state=AnswerState.CANCELLED)) is None


async def test_of_many_who_end_an_answer_one_does(
    answers: AnswerStore, elsewhere: AnswerStore
) -> None:
    for _ in range(10):
        answer = await new_answer(answers)
        ends = [
            replace(answer, state=state, text=state)
            for state in (AnswerState.COMPLETED, AnswerState.CANCELLED) * 4
        ]
        done = await asyncio.gather(
            *((answers, elsewhere)[n % 2].save(one) for n, one in enumerate(ends))
        )
        (winner,) = [one for one in done if one is not None]
        assert await answers.get(TENANT, answer.id) == winner


async def test_of_many_that_create_an_answer_all_have_the_same(
    answers: AnswerStore, elsewhere: AnswerStore
) -> None:
    answer = an_answer()
    made = await asyncio.gather(
        *(
            (answers, elsewhere)[n % 2].create(replace(answer, question=f"question {n}"))
            for n in range(8)
        )
    )
    assert len({one.question for one in made}) == 1


async def test_answers_come_the_newest_first_without_rounds(answers: AnswerStore) -> None:
    made = [await new_answer(answers) for _ in range(5)]
    await new_answer(answers, "other")
    last = await saved(answers, replace(made[4], rounds=(a_round(1),), text="so"))
    newest = await answers.answers(TENANT, 3)
    assert newest == [replace(last, rounds=()), made[3], made[2]]
    older = await answers.answers(TENANT, 3, before=newest[-1].id)
    assert older == [made[1], made[0]]
    assert await answers.answers(TENANT, 3, before=older[-1].id) == []


async def test_answers_whose_ids_tell_no_time_come_the_newest_first_too(
    answers: AnswerStore,
) -> None:
    ids = [sign * 32 for sign in "4c08f"]
    for number, answer_id in enumerate(ids):
        await new_answer(answers, id=answer_id, created_at=NOW + number)
    newest = [one.id for one in await answers.answers(TENANT, 2)]
    older = [one.id for one in await answers.answers(TENANT, 9, before=newest[-1])]
    assert newest + older == ids[::-1]


async def test_a_tenant_sees_and_changes_only_its_own(answers: AnswerStore) -> None:
    answer = await new_answer(answers)
    assert await answers.get("other", answer.id) is None
    assert await answers.answers("other", 10) == []
    assert await answers.save(replace(answer, tenant="other", text="mine")) is None
    assert await answers.create(replace(answer, tenant="other", question="mine?")) == replace(
        answer, tenant="other", question="mine?"
    )
    assert await answers.get(TENANT, answer.id) == answer


async def test_those_that_run_are_looked_through_by_pages(answers: AnswerStore) -> None:
    running = [await new_answer(answers, tenant) for tenant in ("a", "a", "b", "c")]
    over = await new_answer(answers, "b")
    await saved(answers, replace(over, state=AnswerState.FAILED))
    await new_answer(answers, "a", created_at=NOW + 100)
    running[2] = await saved(answers, replace(running[2], rounds=(a_round(1),)))
    page = await answers.running(NOW + 1, 3)
    assert list(page) == [*running[:2], replace(running[2], rounds=())]
    rest = await answers.running(NOW + 1, 3, (page[-1].tenant, page[-1].id))
    assert list(rest) == running[3:]


async def test_any_text_can_be_stored(answers: AnswerStore) -> None:
    answer = await new_answer(answers, question=DIRTY)
    assert answer.question == CLEAN
    dirty = replace(
        answer,
        plan=Plan((DIRTY,)),
        rounds=(a_round(1, DIRTY),),
        text=DIRTY,
        notes=(DIRTY,),
        models={"plan": DIRTY},
    )
    after = await saved(answers, dirty)
    assert (after.text, after.notes, after.models) == (CLEAN, (CLEAN,), {"plan": CLEAN})
    assert (after.plan, after.evidence[0].text) == (Plan((CLEAN,)), CLEAN)
    assert await answers.get(TENANT, answer.id) == after


async def test_an_answer_outlives_the_process_that_stored_it(store_name: str, url: str) -> None:
    async with answers_at(store_name, url) as first:
        after = await saved(first, whole(await new_answer(first)))
    async with answers_at(store_name, url) as second:
        assert await second.get(TENANT, after.id) == after
