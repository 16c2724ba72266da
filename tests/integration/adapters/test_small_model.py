"""A real language model, asked by a real job: the protocol is the true one."""

from collections.abc import Awaitable

import pytest

from penstock import JobContext, JobState
from penstock.adapters.models.chat import open_models
from penstock.errors import CutShort
from penstock.model.answer import Phase
from penstock.model.llm import LlmConfig, ModelConfig
from tests.support.handler_app import HandlerApp
from tests.support.phase_models import LANES, QUESTION, streamed
from tests.support.small_model import NAME, small_model
from tests.support.worker_processes import Farm

MOST = 24


async def ending(text: Awaitable[str]) -> str:
    try:
        return await text
    except CutShort:
        return "cut short"


@pytest.mark.alone
@pytest.mark.timeout(300)
async def test_real_model_answers_streamed_and_whole_alike(farm: Farm) -> None:
    """What it says matters less than that it ends the same way, by itself or for want of tokens.
    The server ends a connection over which nothing is asked for 5 s, as by a process that stands
    still: that is tried again, and what was answered before comes from its receipt."""
    runner = HandlerApp(farm, lanes=LANES, max_retries=5)
    runs: list[list[str]] = []
    with small_model() as url:
        answer = open_models(LlmConfig(url, {"answer": ModelConfig(NAME)}))[Phase.ANSWER]

        async def work(ctx: JobContext) -> list[str]:
            pieces: list[str] = []
            runs.append(pieces)
            return [
                await ending(streamed(answer, ctx, pieces, most=MOST)),
                await ending(answer.complete(ctx, QUESTION, most=MOST)),
            ]

        done = await runner.run(work, lane=None, timeout=200, patience=200)
        assert done.state is JobState.COMPLETED, done.error
    in_pieces, whole = done.result
    assert in_pieces == whole
    assert max(map(len, runs)) > 3
