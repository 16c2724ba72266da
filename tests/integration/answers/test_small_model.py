"""An answer by a real language model, from the question to the end of the stream."""

import pytest

from tests.support.answers import QUESTION, Study, check_citations, told
from tests.support.small_model import NAME, small_model

SECONDS = 480.0
"""It is slow on a busy machine, and all of it must be over in time."""


@pytest.mark.alone
@pytest.mark.timeout(SECONDS + 120)
async def test_real_model_is_heard_and_what_it_cites_is_there(bare_study: Study) -> None:
    """A model so small says little of use. What holds whatever it says: it was asked in each phase,
    text came in pieces, every citation resolves, every other sentence is marked, and there is one
    end."""
    study = bare_study
    lanes = study.farm.settings["lanes"]
    slow = {"timeout_seconds": SECONDS}
    lanes |= {name: {**lanes[name], **slow} for name in ("llm.plan", "llm.search", "llm.answer")}
    with small_model() as url:
        study.add_config(f"llm:\n  base_url: {url}\n  models: {{answer: {NAME}}}\n")
        async with study.running(answer_seconds=SECONDS, search_loop_seconds=SECONDS / 3) as app:
            asked = await app.answers.ask(QUESTION)
            answer = await app.answers.wait(asked.id, timeout=SECONDS + 20)
            events = await told(app, answer.id)
            answered = [
                job for job in await app.jobs(kind="answers.write") if job.state == "completed"
            ]
    assert answer.state == "completed"
    assert answer.models == dict.fromkeys(("plan", "search", "answer"), NAME)
    assert answer.mode == "model", answer.notes
    assert answered
    assert answer.text
    check_citations(answer)
    assert answer.citations or answer.unsupported
    kinds = [one.what for one in events]
    assert "token" in kinds
    assert kinds[-1] == "done"
    assert kinds.count("done") == 1
