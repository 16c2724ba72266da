"""Language models in the jobs of a test: one for each phase, asked through a real queue."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from penstock import JobContext
from penstock.adapters.models.chat import open_models
from penstock.model.answer import Phase
from penstock.model.lane import LaneConfig
from penstock.model.llm import LlmConfig, ModelConfig
from penstock.ports.language_model import LanguageModel, Message
from tests.support.handler_app import FREE
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer

LLM = LaneConfig(min_interval_seconds=0.0, max_parallel=20, parent="llm")
LANES = {
    "api": FREE,
    "llm": LaneConfig(min_interval_seconds=0.0, max_parallel=40),
    **dict.fromkeys(("llm.plan", "llm.search", "llm.answer"), LLM),
}
MODELS = {"plan": PLAN, "search": SEARCH, "answer": ANSWER}
QUESTION = (Message("system", "Be brief."), Message("user", "What is a penstock?"))


def phases(model: ModelServer, **section: Any) -> dict[Phase, LanguageModel]:
    """All of `model`, unless the section says otherwise."""
    models = {role: ModelConfig(name) for role, name in MODELS.items()}
    return open_models(LlmConfig(**{"base_url": model.url("/v1"), "models": models, **section}))


async def ask(ctx: JobContext, model: LanguageModel, how: str) -> str:
    """`whole` or `streamed`."""
    if how == "whole":
        return await model.complete(ctx, QUESTION, most=100)
    return await streamed(model, ctx, [])


async def streamed(model: LanguageModel, ctx: JobContext, into: list[str], most: int = 100) -> str:
    """The whole text, once it is all there; `into` is what came so far."""
    async with aclosing(model.stream(ctx, QUESTION, most=most)) as pieces:
        async for piece in pieces:
            into += [piece]  # as it comes
    return "".join(into)
