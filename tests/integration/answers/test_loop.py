"""The search loop of an answer: bounded twice, and it ends by naming what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.answers import QUESTION, Study, answered, passages, told
from tests.support.model_server import ANSWER, PLAN, SEARCH, Asked, ModelServer, Reply


def verdict(
    enough: bool = False, missing: tuple[str, ...] = (), queries: tuple[str, ...] = ()
) -> str:
    return json.dumps({"enough": enough, "missing": missing, "queries": queries})


def never_enough(*missing: str) -> Callable[[Asked], str]:
    """A model that always wants to know something else."""
    calls = iter(range(1000))
    return lambda asked: verdict(missing=missing, queries=(f"mill wheel {next(calls)}",))


async def test_there_are_never_more_than_five_rounds_and_the_last_has_more_effort(
    study: Study, model: ModelServer
) -> None:
    study.add_config("  reasoning: true\n")
    model.script[SEARCH] = never_enough("who built it")
    async with study.running() as app:
        answer = await answered(app)
        events = await told(app, answer.id)
    assert [turn.number for turn in answer.rounds] == [1, 2, 3, 4, 5]
    assert answer.rounds[0].queries == ("overshot wheel", "weight of water")
    assert [turn.queries for turn in answer.rounds[1:]] == [(f"mill wheel {n}",) for n in range(4)]
    efforts = [one.body["reasoning_effort"] for one in model.asked(SEARCH)]
    assert efforts == ["low"] * 4 + ["medium"]
    assert answer.missing == ("who built it",)
    assert answer.mode == "model"
    searching = [one.data for one in events if one.what == "searching"]
    assert [one["round"] for one in searching] == [1, 2, 3, 4, 5]
    assert "who built it" in model.asked(ANSWER)[0].user


async def test_recovery_is_for_what_is_missing(study: Study, model: ModelServer) -> None:
    """Not content, but without a word on what is missing: three rounds are enough."""
    model.script[SEARCH] = never_enough()
    async with study.running() as app:
        answer = await answered(app)
    assert len(answer.rounds) == 3
    assert answer.mode == "model"


async def test_nothing_found_is_reason_to_recover(study: Study, model: ModelServer) -> None:
    model.script[SEARCH] = never_enough()
    async with study.running([]) as app:
        answer = await answered(app)
    assert len(answer.rounds) == 5
    assert answer.missing == (QUESTION,)


async def test_the_loop_ends_where_it_is_enough_or_nothing_new_is_asked_for(
    study: Study, model: ModelServer
) -> None:
    async with study.running() as app:
        model.script[SEARCH] = [
            verdict(missing=("stones",), queries=("runner stone", "overshot wheel")),
            verdict(enough=True, queries=("more and more",)),
        ]
        answer = await answered(app)
        assert [turn.queries for turn in answer.rounds[1:]] == [("runner stone",)]
        assert (answer.rounds[-1].enough, answer.missing) == (True, ())
        model.script[SEARCH] = verdict(missing=("stones",), queries=("overshot wheel",))
        again = await answered(app)
        assert len(again.rounds) == 1
        assert again.missing == ("stones",)


async def test_each_passage_is_found_once_and_numbered_in_order(
    study: Study, model: ModelServer
) -> None:
    model.script[SEARCH] = never_enough("more")
    async with study.running() as app:
        answer = await answered(app)
    numbers = [one.number for one in answer.evidence]
    assert numbers == list(range(1, len(numbers) + 1))
    places = {(one.collection, one.document, one.chunk) for one in answer.evidence}
    assert len(places) == len(numbers)
    assert [one["number"] for one in passages(model.asked(SEARCH)[-1])] == numbers


async def test_evidence_is_bounded_whatever_is_found(study: Study, model: ModelServer) -> None:
    model.script[SEARCH] = never_enough("more")
    async with study.running([]) as app:
        text = "\n\n".join(f"Mill wheel {n} turns by the weight of water. " * 6 for n in range(90))
        await app.documents.add(text, id="long")
        await app.documents.wait("long", timeout=60.0)
        answer = await answered(app)
    assert max(len(turn.evidence) for turn in answer.rounds) <= 10
    assert 10 < len(answer.evidence) <= 30


async def test_the_wall_clock_is_kept_when_the_model_is_slow(
    study: Study, model: ModelServer
) -> None:
    forever = never_enough("more")
    model.script[SEARCH] = lambda asked: Reply(forever(asked), delay=2.0)
    async with study.running(search_loop_seconds=4.0) as app:
        answer = await answered(app)
    assert 1 <= len(answer.rounds) <= 3, "there would be five"
    assert answer.evidence
    assert answer.mode == "model", "what was found is answered from"
    assert answer.missing


async def test_plans_that_cannot_be_read_are_asked_for_once_more(
    study: Study, model: ModelServer
) -> None:
    good = '```json\n{"queries": ["overshot wheel"], "enough": "so"}\n```'
    model.script[PLAN] = ["I would search for wheels.", f"Of course! {good} I hope that helps."]
    async with study.running() as app:
        answer = await answered(app)
    assert answer.plan is not None
    assert (answer.plan.queries, answer.notes) == (("overshot wheel",), ())
    assert len(model.asked(PLAN)) == 2
    assert "JSON object" in model.asked(PLAN)[1].user
