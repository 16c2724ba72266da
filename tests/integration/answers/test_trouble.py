"""Answers while models hang, fail, or say what is of no use: in time, and with what there is."""

from __future__ import annotations

import time

import pytest

from penstock.answers.jobs import CLOCK, job_id, log_of
from penstock.model.answer import Phase
from penstock.ports.queue import JobFilter
from tests.support.answers import (
    ENOUGH,
    PLANNED,
    QUESTION,
    SOON,
    Study,
    all_told,
    answered,
    check_citations,
    content,
    told,
)
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer, Reply
from tests.support.waiting import until

MODELS = (PLAN, SEARCH, ANSWER)
LATE = 40.0
"""Seconds that a busy machine may take besides; who waits for a model that hangs waits longer."""


@pytest.mark.parametrize(("name", "seconds"), [(PLAN, 30.0), (SEARCH, 60.0), (ANSWER, 15.0)])
async def test_a_model_that_hangs_does_not_keep_the_answer(
    study: Study, model: ModelServer, name: str, seconds: float
) -> None:
    """Who comes after it has time enough to be asked."""
    model.script[name] = Reply(hang=True)
    async with study.running(search_loop_seconds=5.0) as app:
        begun = time.monotonic()
        answer = await answered(app, seconds=seconds)
        took = time.monotonic() - begun
        assert took < 15.0 + LATE
        assert answer.state == "completed"
        assert answer.mode == ("extractive" if name == ANSWER else "model")
        assert any("in time" in note for note in answer.notes)
        assert answer.citations
        check_citations(answer)
        assert (await all_told(app, answer.id)).count("done") == 1


async def test_all_models_may_hang(study: Study, model: ModelServer) -> None:
    model.script = dict.fromkeys(MODELS, Reply(hang=True))
    async with study.running() as app:
        begun = time.monotonic()
        answer = await answered(app, seconds=15.0)
        assert time.monotonic() - begun < 15.0 + LATE
        assert (answer.state, answer.mode) == ("completed", "extractive")
        assert answer.citations


async def test_a_stream_that_stalls_is_given_up_in_time(study: Study, model: ModelServer) -> None:
    model.script[ANSWER] = Reply("Water turns it [1]. And so on.", stall_after=5)
    async with study.running() as app:
        begun = time.monotonic()
        answer = await answered(app, seconds=15.0)
        assert time.monotonic() - begun < 15.0 + LATE
        events = await told(app, answer.id)
    assert answer.mode == "extractive"
    writing = [one for one in events if one.what == "writing"]
    assert [one.data["mode"] for one in writing] == ["model", "extractive"]
    behind = [one for one in events if one.what == "token" and one.version > writing[1].version]
    assert "".join(one.data["text"] for one in behind) == answer.text


async def test_a_stream_that_breaks_off_is_written_anew(study: Study, model: ModelServer) -> None:
    model.script[ANSWER] = [
        Reply("Water turns it [1]. And so on [1]. " * 8, cut_after=50, pause=0.05),
        "It is the weight of water [1].",
    ]
    async with study.running() as app:
        answer = await answered(app)
        events = await told(app, answer.id)
    assert (answer.mode, answer.text) == ("model", "It is the weight of water [1].")
    writing = [one for one in events if one.what == "writing"]
    assert len(writing) == 2
    assert writing[0].data["attempt"] < writing[1].data["attempt"]
    tokens = [one for one in events if one.what == "token"]
    newest = [one for one in tokens if one.data["attempt"] == writing[1].data["attempt"]]
    assert "".join(one.data["text"] for one in newest) == answer.text
    assert len(tokens) > len(newest), "some of the first was told"


NO_JSON = [
    "I do not know.",
    "{",
    "[1, 2]",
    '{"queries": "wheel", "enough": "perhaps"}',
    '{"queries": [], "enough": 7}',
    '{"queries": [1, null, {"url": "http://evil/"}], "enough": "x"}',
    '{"nothing": true}',
    "{" * 5000,
    "x" * 100_000,
    '{"queries": ["   "]}',
]


@pytest.mark.parametrize("said", NO_JSON, ids=range(len(NO_JSON)))
async def test_nonsense_of_planner_and_judge_costs_only_the_plan(
    study: Study, model: ModelServer, said: str
) -> None:
    model.script |= {PLAN: said, SEARCH: said}
    async with study.running() as app:
        answer = await answered(app)
    assert (answer.state, answer.mode) == ("completed", "model")
    assert answer.plan is not None
    assert answer.plan.queries == (QUESTION,)
    assert [len(model.asked(name)) for name in MODELS] == [2, 2, 1]
    assert any("without a plan" in note for note in answer.notes)
    assert any("could not judge" in note for note in answer.notes)
    assert len(answer.rounds) == 1


WRITTEN = [
    (Reply(""), "extractive", "wrote no answer"),
    (Reply("   \n "), "extractive", "wrote no answer"),
    (Reply(raw=b"data: nonsense\n\n"), "extractive", "wrote no answer"),
    (Reply(raw=b""), "extractive", "wrote no answer"),
    (Reply("word " * 20_000), "extractive", "wrote no answer"),
    (Reply("Water turns it [1]. And", finish="length"), "model", "cut short"),
    (Reply("No citation at all."), "model", ""),
    (Reply("[1] [2] [3]"), "model", ""),
    (Reply("[0] [-1] [99999] [1e3] [[1]] ] [ [1"), "model", ""),
]


@pytest.mark.parametrize(("reply", "mode", "note"), WRITTEN, ids=range(len(WRITTEN)))
async def test_whatever_a_model_writes_all_citations_resolve(
    study: Study, model: ModelServer, reply: Reply, mode: str, note: str
) -> None:
    model.script[ANSWER] = reply
    async with study.running() as app:
        answer = await answered(app)
    assert (answer.state, answer.mode) == ("completed", mode)
    assert answer.text.strip()
    assert not note or any(note in one for one in answer.notes)
    check_citations(answer)
    if answer.text == "No citation at all.":
        assert answer.unsupported == ((0, len(answer.text)),)
        assert answer.missing == (QUESTION,)


async def test_a_model_that_is_away_for_a_moment_is_waited_for(
    study: Study, model: ModelServer
) -> None:
    model.script[PLAN] = [Reply(status=503), Reply(status=503), PLANNED]
    model.script[SEARCH] = [Reply(status=500), ENOUGH]
    async with study.running(max_retries=5) as app:
        answer = await answered(app)
        assert (answer.mode, answer.notes) == ("model", ())
        await app.drain(SOON)  # the one that tells the end is among them
        jobs = await app.jobs(log=log_of(answer.id))
        assert {job.state for job in jobs} == {"completed"}


async def test_while_the_model_is_down_questions_are_answered_without_it(
    study: Study, model: ModelServer
) -> None:
    """The breaker opens; whoever asks gets sentences of the evidence, and soon."""
    model.script = dict.fromkeys(MODELS, Reply(reset=True))
    async with study.running() as app:
        begun = time.monotonic()
        asked = [await app.answers.ask(QUESTION, seconds=9.0) for _ in range(3)]
        answers = [await app.answers.wait(one.id, timeout=SOON) for one in asked]
        assert time.monotonic() - begun < 9.0 + LATE
        for answer in answers:
            assert (answer.state, answer.mode) == ("completed", "extractive")
            assert answer.citations
            assert any("model" in note for note in answer.notes)
            assert (await told(app, answer.id))[-1].what == "done"
        content(model)

        async def closed() -> bool:
            answer = await answered(app, seconds=20.0)
            return answer.mode == "model"

        await until(closed, "the model is used again", SOON)


async def test_a_refused_key_is_a_note_and_the_lane_learns_of_it(
    study: Study, model: ModelServer
) -> None:
    model.script[ANSWER] = Reply(status=401)
    async with study.running() as app:
        answer = await answered(app, seconds=30.0)
        assert (answer.state, answer.mode) == ("completed", "extractive")
        assert any("credentials" in note for note in answer.notes)
        (job,) = await app.jobs(log=log_of(answer.id), kind="answers.write")
        ended = await app.wait(job.id, SOON)
        assert [one["error"]["type"] for one in ended.history] == ["AuthenticationError"]
        assert ended.state == "completed", "there was nothing left to do for it"


async def test_without_an_embedder_words_find_the_evidence_and_the_answer_says_so(
    study: Study,
) -> None:
    async with study.running() as app:
        study.shelf.embedder.fault = "500"
        answer = await answered(app)
        assert answer.mode == "model"
        assert answer.evidence
        assert any("without vectors" in note for note in answer.notes)


async def test_a_question_that_nobody_worked_on_in_time_is_answered_all_the_same(
    study: Study, model: ModelServer
) -> None:
    await study.filled()
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION, seconds=1.0)
        ends_at = asked.ends_at
        await until(lambda: app.queue.now() > ends_at, "its time is up")
    async with study.running([]) as app:
        answer = await app.answers.wait(asked.id, timeout=SOON)
        assert (answer.state, answer.mode) == ("completed", "extractive")
        assert answer.citations
        assert (await all_told(app, answer.id)).count("done") == 1


async def test_an_answer_stored_by_a_process_that_died_before_its_jobs_is_given(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    await study.filled()

    async def died(*_: object) -> None:
        raise KeyboardInterrupt

    async with study.idle() as app:
        with monkeypatch.context() as patched:
            patched.setattr("penstock.answers.jobs.start", died)
            with pytest.raises(KeyboardInterrupt):
                await app.answers.ask(QUESTION)
        assert await app.jobs(kind="answers.*") == []
        (asked,) = await app.answers.answers()
    async with study.running([]) as app:
        answer = await app.answers.wait(asked.id, timeout=SOON)
        assert (answer.state, answer.mode) == ("completed", "model")


async def test_an_answer_whose_jobs_were_all_cancelled_by_hand_is_ended(study: Study) -> None:
    async with study.idle() as app:
        asked = await app.answers.ask(QUESTION)
        clock = job_id(asked, CLOCK, Phase.PLAN)
        assert len(await app.queue.cancel(JobFilter(kind="answers.*"))) == 2
        assert (await app.get(clock)).state == "cancelled"
    async with study.running([]) as app:
        answer = await app.answers.wait(asked.id, timeout=SOON)
        assert (answer.state, answer.error) == ("failed", "its jobs were cancelled")
        assert (await all_told(app, answer.id)) == ["error"]
