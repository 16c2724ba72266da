"""A client of OpenAI's `/v1/chat/completions`: whole responses, or a stream of events. Errors quote
nothing of a response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from penstock.adapters.models.authorization import authorization
from penstock.errors import CutShort, ModelError, RateLimited, Unavailable
from penstock.model.llm import ServedModel
from penstock.ports.receipts import Usage, usage_of
from penstock.text.normalize import storable

MAX_LINE = 1_000_000
"""Bytes of a line of a stream."""
LAST_WORDS = 1.0
"""Seconds for what is behind the end of an answer: what it has used, from some servers."""
DONE = b"[DONE]"
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class ChatServer:
    """Where one model is asked. The key is read from the environment at each request, and is in no
    message and no log."""

    def __init__(self, served: ServedModel) -> None:
        self.name = served.name
        self.url = f"{served.base_url.rstrip('/')}/chat/completions"
        self._key_variable = served.key_variable

    def headers(self) -> dict[str, str]:
        """ConfigError where there is no key."""
        return authorization(self._key_variable, "language model")

    def text(self, body: bytes) -> str:
        """Of a whole answer. CutShort where it ends for want of tokens."""
        return self.answer(body)[0]

    def answer(self, body: bytes) -> tuple[str, Usage]:
        """The same, and what it says of its cost."""
        try:
            answer: Any = json.loads(body)
            self._check_error(answer)
            choice = answer["choices"][0]
            text, ending = _plain(choice["message"]["content"]), choice.get("finish_reason")
        except _MALFORMED as error:
            raise self.wrong("an answer that is no chat completion") from error
        self._check_ending(ending)
        if not text.strip():
            raise self.wrong("an empty answer")
        return text, usage_of(answer)

    async def pieces(
        self, parts: AsyncIterator[bytes], told: list[Usage] | None = None
    ) -> AsyncGenerator[str, None]:
        """Of a streamed answer, as they come. CutShort behind the last one where that ends for
        want of tokens, Unavailable where it breaks off. `told` is given what it says of its cost.
        """
        told = [] if told is None else told
        begun = spoken = False
        async with aclosing(self._events(parts)) as events:
            async for event in events:
                if event == DONE:
                    break
                piece, ending = self._piece(event)
                _note_usage(event, told)
                begun = True
                if piece:
                    spoken = spoken or bool(piece.strip())
                    yield piece
                if ending is not None:
                    await _rest(events, told)
                    self._check_ending(ending)
                    break
            else:
                if begun:
                    raise Unavailable(f"{self.name}: its answer broke off")
                raise self.wrong("an answer that is no stream of events")
        if not spoken:
            raise self.wrong("an empty answer")

    async def _events(self, parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """The data of each event. The last one needs no empty line behind it."""
        data: list[bytes] = []
        rest = b""
        async for part in parts:
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > MAX_LINE:
                raise self.wrong("an answer with a line that has no end")
            for line in lines:
                field, _, value = line.removesuffix(b"\r").partition(b":")
                if field == b"data":
                    data.append(value.removeprefix(b" "))
                elif not line.strip() and data:
                    yield b"\n".join(data)
                    data.clear()
        if rest.startswith(b"data:"):
            data.append(rest.removeprefix(b"data:").strip())
        if data:
            yield b"\n".join(data)

    def _piece(self, event: bytes) -> tuple[str, str | None]:
        """And how the answer ends, if it does."""
        try:
            chunk: Any = json.loads(event)
            self._check_error(chunk)
            if not chunk["choices"]:  # how much was used, and the like
                return "", None
            choice = chunk["choices"][0]
            delta, ending = choice.get("delta") or {}, choice.get("finish_reason")
            return _plain(delta.get("content")), ending
        except _MALFORMED as error:
            raise self.wrong("an event that is no part of a chat completion") from error

    def _check_error(self, answer: Any) -> None:
        """Some servers answer 200, and what went wrong stands inside."""
        error = answer.get("error")
        if error is None:
            return
        code = str(error.get("code")) if isinstance(error, dict) else ""
        if code == "429":
            raise RateLimited(f"{self.name}: error 429 instead of an answer")
        if code.startswith("5") and len(code) == 3:
            raise Unavailable(f"{self.name}: error {code} instead of an answer")
        raise self.wrong("an error instead of an answer")

    def _check_ending(self, ending: Any) -> None:
        if ending not in (None, "stop"):
            raise CutShort(f"{self.name} gave an answer that was cut short")

    def wrong(self, what: str) -> ModelError:
        return ModelError(f"{self.name} gave {what}")


async def _rest(events: AsyncIterator[bytes], told: list[Usage]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORDS):
            async for event in events:
                _note_usage(event, told)


def _note_usage(event: bytes, told: list[Usage]) -> None:
    """Some servers say it with the last piece, some in an event of its own behind it."""
    if b'"usage"' in event:
        with suppress(ValueError, RecursionError):
            usage = usage_of(json.loads(event))
            if usage != Usage():
                told.append(usage)


def _plain(content: Any) -> str:
    """Text that can be stored, of a text or of a list of parts."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError("neither a text nor parts of one")
    return storable(content or "")
