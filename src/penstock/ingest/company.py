"""Small documents share requests to the embedder.

One of the jobs that embed at the moment makes the request, in its own name and with its own permit;
the others hand it their texts and wait. What ends that job ends nobody else's: if it is cancelled
the others go on in another company, and if the request fails for what may be one of the texts,
each asks again alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from penstock.engine.context import JobContext
from penstock.model.errors import EmbedderError, HttpError, LaneBusy, Unavailable

Send = Callable[[JobContext, Sequence[str]], Awaitable[list[bytes]]]

MOST = 50
"""Texts in one request."""
WAIT_SECONDS = 0.01
"""How long company is waited for."""


class _Turn(Enum):
    """What to do without vectors."""

    AGAIN = "again"
    ALONE = "alone"


@dataclass(slots=True, eq=False)
class _Ask:
    texts: Sequence[str]
    answer: asyncio.Future[list[bytes] | _Turn] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def tell(self, answer: list[bytes] | _Turn) -> None:
        if not self.answer.done():  # it is if its job was cancelled
            self.answer.set_result(answer)


class Company:
    """The jobs of a process that embed at the moment."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._gathered: list[_Ask] | None = None
        """Those of the next request; None: nobody gathers."""
        self._full = asyncio.Event()

    async def embed(self, ctx: JobContext, texts: Sequence[str]) -> list[bytes]:
        """The vectors of at most MOST texts."""
        turn = _Turn.AGAIN if len(texts) < MOST else _Turn.ALONE
        while turn is _Turn.AGAIN:
            ask = _Ask(texts)
            if self._gathered is None:
                answer = await self._lead(ctx, ask)
            else:
                self._gathered.append(ask)
                if _count(self._gathered) >= MOST:
                    self._full.set()
                answer = await ask.answer
            if not isinstance(answer, _Turn):
                return answer
            turn = answer
        return await self._send(ctx, texts)

    async def _lead(self, ctx: JobContext, own: _Ask) -> list[bytes] | _Turn:
        others: list[_Ask] = []
        try:
            others = await self._gather(own)
            every = [own, *others]
            vectors = await self._send(ctx, [text for ask in every for text in ask.texts])
        except (EmbedderError, HttpError, Unavailable, LaneBusy) as error:
            _tell(others, _Turn.ALONE)
            answered = not isinstance(error, Unavailable) or error.status is not None
            if others and answered and not isinstance(error, LaneBusy):
                return _Turn.ALONE  # it may not have been one of our texts
            raise
        finally:
            _tell(others, _Turn.AGAIN)  # whoever has not been told anything
        start = 0
        for ask in every:
            ask.tell(vectors[start : start + len(ask.texts)])
            start += len(ask.texts)
        return own.answer.result()

    async def _gather(self, own: _Ask) -> list[_Ask]:
        """Those that fit into one request beside our own."""
        self._gathered = [own]
        self._full.clear()
        gathered, fit = self._gathered, 0
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._full.wait()
            while fit < len(gathered) and _count(gathered[: fit + 1]) <= MOST:
                fit += 1
        finally:
            self._gathered = None
            _tell(gathered[max(1, fit) :], _Turn.AGAIN)
        return [ask for ask in gathered[1:fit] if not ask.answer.done()]


def _count(asks: Sequence[_Ask]) -> int:
    return sum(len(ask.texts) for ask in asks)


def _tell(asks: Sequence[_Ask], turn: _Turn) -> None:
    for ask in asks:
        ask.tell(turn)
