"""Language models served as OpenAI's `/v1/chat/completions`, for the phases of an answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from penstock.adapters.models.chat_client import ChatServer
from penstock.errors import CutShort
from penstock.model.amounts import Amounts
from penstock.model.answer import Phase
from penstock.model.llm import PHASES, LlmConfig, ServedModel
from penstock.outbound.recorded import without_keys
from penstock.ports.bill import Bill
from penstock.ports.language_model import Effort, LanguageModel, Message
from penstock.ports.provider import ProviderContext
from penstock.ports.receipts import Receipt, ReceiptAnswer, ReceiptRequest, Usage

MAX_BYTES = 16_000_000
"""Of an answer with all that is around its text: streamed, some hundred for each token."""
SILENCE = 30.0
"""Seconds between two parts of a stream, once it has begun."""
BYTES_PER_TOKEN = 2
"""At least, of all but rare texts. What is reserved too much comes back with the answer."""
MESSAGE_TOKENS = 16
"""Around each message, at most."""
ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-fA-F]{4})")
"""A character as JSON may write it."""

Mask = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Masks personal data."""


class ChatModel:
    """One model, asked in one lane. Writes are not tried again by themselves, and this is one: a
    second request would double the load of a server that is late.

    Inside a job each answer leaves a receipt. With `mask` it is masked before: a model may say what
    it was not given.
    """

    def __init__(self, served: ServedModel, lane: str, mask: Mask | None = None) -> None:
        self.name = served.name
        self.lane = lane
        self._reasoning = served.reasoning
        self._server = ChatServer(served)
        self._mask = mask

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
        question = self._question(messages, most, effort)
        receipt = self._receipt(asking, question)
        known = await receipt.found()
        if known is None:
            response = await asking.http.post(
                self._server.url,
                lane=self.lane,
                max_bytes=MAX_BYTES,
                headers=self._server.headers(),
                json=question,
                amount=_bill(self.name, messages, most),
            )
            text, usage = self._server.answer(response.content)
            if self._mask is not None:
                text = ESCAPED.sub(_unescaped, text)
            known = await receipt.keep(ReceiptAnswer({"text": await self._masked(text)}, usage))
        return str(known["text"])

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
        does. From a receipt the whole text is one piece."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        question = self._question(messages, most, effort) | {"stream": True}
        receipt = self._receipt(asking, question)
        known = await receipt.found()
        if known is not None:
            yield str(known["text"])
            if known["cut"]:
                raise CutShort(known["cut"])
            return
        reading = asyncio.create_task(
            self._read(asking, receipt, question, pieces, _bill(self.name, messages, most)),
            name="penstock-model",
        )
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(
        self,
        asking: ProviderContext,
        receipt: Receipt,
        question: dict[str, Any],
        pieces: asyncio.Queue[str | None],
        bill: Bill,
    ) -> None:
        said, told = "", list[Usage]()
        cut: CutShort | None = None
        try:
            async with (
                asking.http.stream(
                    "POST",
                    self._server.url,
                    lane=self.lane,
                    max_bytes=MAX_BYTES,
                    silence=SILENCE,
                    # Some servers end the connection behind a stream and do not say so: what is
                    # asked over it at once is lost. So it is not used again.
                    headers={**self._server.headers(), "connection": "close"},
                    json=question,
                    amount=bill,
                ) as parts,
                aclosing(self._server.pieces(parts, told)) as coming,
            ):
                try:
                    async for piece in coming:
                        said += piece
                        pieces.put_nowait(piece)
                except CutShort as error:  # which is all there will be
                    cut = error
                if told:
                    bill.told(told[-1])
            whole = {"text": await self._masked(said), "cut": None if cut is None else str(cut)}
            await receipt.keep(ReceiptAnswer(whole, told[-1] if told else Usage()))
            if cut is not None:
                raise cut
        finally:
            pieces.put_nowait(None)

    async def _masked(self, text: str) -> str:
        text = without_keys(text, self._server.headers())
        if self._mask is None:
            return text
        (masked,) = await self._mask([text])
        return masked

    def _receipt(self, asking: ProviderContext, question: dict[str, Any]) -> Receipt:
        shown = {name: one for name, one in question.items() if name not in ("model", "messages")}
        asked = [self._server.url, question]
        return asking.receipts.begin(ReceiptRequest(self.lane, asked, self.name, shown))

    def _question(self, messages: Sequence[Message], most: int, effort: Effort) -> dict[str, Any]:
        question = {"model": self.name, "messages": [message._asdict() for message in messages]}
        if self._reasoning:
            return question | {"reasoning_effort": effort, "max_completion_tokens": most}
        return question | {"temperature": 0, "max_tokens": most}


def _bill(model: str, messages: Sequence[Message], most: int) -> Bill:
    """What a request uses at most: no tokenizer makes more tokens of a text than it has bytes, and
    hardly any more than half as many."""
    written = sum(len(message.content.encode()) // BYTES_PER_TOKEN for message in messages)
    asked = written + MESSAGE_TOKENS * len(messages)
    return Bill(Amounts.of(input_tokens=asked, output_tokens=most), model)


def _unescaped(found: re.Match[str]) -> str:
    """The character itself, where JSON may have it so: nothing is to be hidden from the mask."""
    letter = chr(int(found[2], 16))
    return found[1] + letter if letter.isprintable() and letter not in '"\\' else found[0]


def open_models(llm: LlmConfig, mask: Mask | None = None) -> dict[Phase, LanguageModel]:
    """The model of each phase of an answer; empty where none is configured."""
    served = {Phase(phase): llm.model(phase) for phase in PHASES}
    return {
        phase: ChatModel(model, f"llm.{phase}", mask)
        for phase, model in served.items()
        if model is not None
    }
