"""Language models served as OpenAI's `/v1/chat/completions`, for the phases of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from penstock.adapters.models.chat_client import ChatServer
from penstock.model.answer import Phase
from penstock.model.llm import PHASES, LlmConfig, ServedModel
from penstock.ports.language_model import Effort, LanguageModel, Message
from penstock.ports.provider import ProviderContext

MAX_BYTES = 16_000_000
"""Of an answer with all that is around its text: streamed, some hundred for each token."""
SILENCE = 30.0
"""Seconds between two parts of a stream, once it has begun."""


class ChatModel:
    """One model, asked in one lane. Writes are not tried again by themselves, and this is one: a
    second request would double the load of a server that is late."""

    def __init__(self, served: ServedModel, lane: str) -> None:
        self.name = served.name
        self.lane = lane
        self._reasoning = served.reasoning
        self._server = ChatServer(served)

    def check(self) -> None:
        """ConfigError where there is no key."""
        self._server.headers()

    async def complete(
        self,
        asking: ProviderContext,
        messages: Sequence[Message],
        *,
        most: int,
        effort: Effort = "low",
    ) -> str:
        response = await asking.http.post(
            self._server.url,
            lane=self.lane,
            max_bytes=MAX_BYTES,
            headers=self._server.headers(),
            json=self._question(messages, most, effort),
        )
        return self._server.text(response.content)

    async def stream(
        self,
        asking: ProviderContext,
        messages: Sequence[Message],
        *,
        most: int,
        effort: Effort = "low",
    ) -> AsyncGenerator[str, None]:
        """The request is read by a task of its own: its permit and its time end with the server's
        answer, however long the caller takes over each piece, and end at once where the caller
        does."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        question = self._question(messages, most, effort) | {"stream": True}
        reading = asyncio.create_task(self._read(asking, question, pieces), name="penstock-model")
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(
        self, asking: ProviderContext, question: dict[str, Any], pieces: asyncio.Queue[str | None]
    ) -> None:
        try:
            async with (
                asking.http.stream(
                    "POST",
                    self._server.url,
                    lane=self.lane,
                    max_bytes=MAX_BYTES,
                    silence=SILENCE,
                    headers=self._server.headers(),
                    json=question,
                ) as parts,
                aclosing(self._server.pieces(parts)) as said,
            ):
                async for piece in said:
                    pieces.put_nowait(piece)
        finally:
            pieces.put_nowait(None)

    def _question(self, messages: Sequence[Message], most: int, effort: Effort) -> dict[str, Any]:
        question = {"model": self.name, "messages": [message._asdict() for message in messages]}
        if self._reasoning:
            return question | {"reasoning_effort": effort, "max_completion_tokens": most}
        return question | {"temperature": 0, "max_tokens": most}


def open_models(llm: LlmConfig) -> dict[Phase, LanguageModel]:
    """The model of each phase of an answer; empty where none is configured."""
    served = {Phase(phase): llm.model(phase) for phase in PHASES}
    return {
        phase: ChatModel(model, f"llm.{phase}")
        for phase, model in served.items()
        if model is not None
    }
