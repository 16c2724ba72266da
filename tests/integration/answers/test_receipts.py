"""What a model has answered is not asked again, whatever becomes of the process that asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.model.answer import Phase
from tests.conformance.support import BACKENDS
from tests.support.answers import ENOUGH, QUESTION, SOON, Study, all_told, check_citations
from tests.support.document_app import Shelf
from tests.support.embedder import EmbedderServer
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer
from tests.support.worker_processes import Farm

MORE = '{"enough": false, "missing": ["the fall"], "queries": ["fall of three metres"]}'
PLACES = [("sqlite", "sqlite"), ("postgres", "postgres"), ("redis", "sqlite")]


@pytest.fixture(params=PLACES, ids="-".join)
def study(
    request: pytest.FixtureRequest, tmp_path: Path, embedder: EmbedderServer, model: ModelServer
) -> Study:
    """Jobs, and answers, in each store."""
    queue, store = request.param
    url = None if queue == "sqlite" else BACKENDS[queue].url(tmp_path)
    farm = Farm(tmp_path, url=url, blobs=f"{tmp_path}/jobs.db-blobs")
    if queue != store:
        farm.settings["store"] = BACKENDS[store].url(tmp_path)
    made = Study(Shelf(farm, embedder), model)
    farm.settings["max_retries"] = 9
    return made


async def test_killed_after_each_answer_of_a_model_it_is_asked_nothing_again(
    study: Study, model: ModelServer
) -> None:
    model.script[SEARCH] = [MORE, ENOUGH]
    try:
        await study.filled()
        async with study.idle() as app:
            asked = await app.answers.ask(QUESTION)
            # Each dies when the model has answered and before that is saved: the plan, the first
            # round, the second one, the end of the search, the text.
            for save in ("before 1", "before 2", "before 2", "before 2", "before 2"):
                worker = await study.farm.start("answering", die=save)
                assert await worker.exit(SOON) == -9
            await study.farm.start("answering")
            answer = await app.answers.wait(asked.id, timeout=SOON)
            assert (answer.state, answer.mode, answer.notes) == ("completed", "model", ())
            assert [turn.number for turn in answer.rounds] == [1, 2]
            check_citations(answer)
            assert (await all_told(app, asked.id)).count("done") == 1
            steps = [
                (step.name, step.receipt and step.receipt.model)
                for job in await app.jobs(limit=1000)
                for step in await app.steps(job.id)
                if step.lane != "embedder"  # that of the documents
            ]
    finally:
        await study.farm.close()
    assert [len(model.asked(name)) for name in (PLAN, SEARCH, ANSWER)] == [1, 2, 1]
    names = {PLAN: Phase.PLAN, SEARCH: Phase.SEARCH, ANSWER: Phase.ANSWER}
    assert sorted(steps) == sorted(
        (f"llm.{names[one]}", one) for one in (PLAN, SEARCH, SEARCH, ANSWER)
    )


async def test_personal_data_that_a_model_says_reaches_no_record(
    study: Study, model: ModelServer
) -> None:
    canary = "kanarienvogel@example.org"
    escaped = canary.replace("@", "\\u0040")
    model.script[PLAN] = json.dumps({"queries": ["wheel"], "enough": canary}).replace(
        canary, escaped
    )
    model.script[ANSWER] = f"It is turned by water, says {canary} [1]."
    try:
        async with study.running() as app:
            asked = await app.answers.ask(QUESTION)
            answer = await app.answers.wait(asked.id, timeout=SOON)
            assert answer.mode == "model"
            stored = [
                str(step) for job in await app.jobs(limit=1000) for step in await app.steps(job.id)
            ]
    finally:
        await study.farm.close()
    assert sum("kept='vectors'" not in step for step in stored) == 3
    assert "kanarienvogel" not in str(stored)
    files = [path for path in study.farm.folder.rglob("*") if path.is_file()]
    assert not any(b"kanarienvogel" in path.read_bytes() for path in files)
