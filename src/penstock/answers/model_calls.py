"""Calls a model until its reply can be parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.answers import prompts
from penstock.errors import ModelError
from penstock.ports.language_model import Effort, LanguageModel, Message
from penstock.ports.provider import ProviderContext

T = TypeVar("T")


async def asked_twice(
    model: LanguageModel,
    asking: ProviderContext,
    messages: Sequence[Message],
    read: Callable[[str], T],
    *,
    most: int,
    effort: Effort,
) -> T:
    """Ask a model and parse its reply with `read`. If it cannot be parsed, the model is asked once
    more, with its reply; raises ModelError if that fails too."""
    said = await model.complete(asking, messages, most=most, effort=effort)
    try:
        return read(said)
    except ModelError:
        messages = prompts.again(messages, said)
        return read(await model.complete(asking, messages, most=most, effort=effort))
