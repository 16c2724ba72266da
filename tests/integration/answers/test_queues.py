"""Answers in one place, their jobs in another: on every queue the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.support import BACKENDS
from tests.support.answers import QUESTION, Study, all_told, answered, check_citations
from tests.support.document_app import Shelf
from tests.support.embedder import EmbedderServer
from tests.support.model_server import ANSWER, ModelServer, Reply
from tests.support.waiting import until
from tests.support.worker_processes import Farm

APART = [
    ("postgres", "postgres"),
    ("postgres", "sqlite"),
    ("redis", "sqlite"),
    ("valkey", "postgres"),
]


@pytest.fixture(params=APART, ids=" and ".join)
def apart(
    request: pytest.FixtureRequest, tmp_path: Path, embedder: EmbedderServer, model: ModelServer
) -> Study:
    """Queue and answers apart."""
    queue, store = request.param
    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path))
    if queue != store:
        farm.settings["store"] = BACKENDS[store].url(tmp_path)
    farm.settings["blobs"] = f"{tmp_path}/jobs.db-blobs"
    return Study(Shelf(farm, embedder), model)


async def test_a_question_is_answered_cancelled_or_out_of_time_on_every_queue(
    apart: Study, model: ModelServer
) -> None:
    async with apart.running() as app:
        answer = await answered(app)
        assert (answer.state, answer.mode, answer.notes) == ("completed", "model", ())
        check_citations(answer)
        whole = ["plan", "searching", "evidence", "writing", "token", "answer", "done"]
        assert await all_told(app, answer.id) == whole
        model.script[ANSWER] = Reply(hang=True)
        late = await answered(app, seconds=3.0)
        assert (late.state, late.mode) == ("completed", "extractive")
        before = len(model.asked(ANSWER))
        asked = await app.answers.ask(QUESTION)
        await until(lambda: len(model.asked(ANSWER)) > before, "it is being written")
        assert (await app.answers.cancel(asked.id)).state == "cancelled"
        assert (await all_told(app, asked.id))[-1] == "error"
        assert {one.state for one in await app.answers.answers()} == {"completed", "cancelled"}
