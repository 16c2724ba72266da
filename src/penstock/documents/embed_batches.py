"""Batches the chunks of small documents into shared requests to the embedder.

One of the jobs that embed at the moment makes the request, in its own name and with its own permit;
the others hand it their texts, leave the lane to jobs that would come along too, and wait. It goes
when it is full, or after a moment; at once where the permit would not last, or nobody else has been
about. What ends that job ends nobody else's: if it is cancelled the others go on in another
company, and if the request fails for what may be one of the texts, each asks again alone.

Who waits has a worker, and no slot that would bound how many do. So nobody leaves the lane while
the embedder is slow, and if it becomes so, they are run again later.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from penstock.documents.jobs import EMBEDDER_LANE
from penstock.engine.context import JobContext
from penstock.errors import EmbedderError, HttpError, LaneBusy, Unavailable

Send = Callable[[JobContext, Sequence[str]], Awaitable[list[bytes]]]
Embed = Callable[[Sequence[str]], Awaitable[list[bytes]]]

MAX_TEXTS = 50
"""Maximum texts in one request."""
WAIT_SECONDS = 0.01
"""How long to wait for other jobs to join a request."""
QUICK_SECONDS = 0.5
"""An embedder that takes longer counts as slow."""
PATIENCE_SECONDS = 1.0
"""How long to wait for a response outside the lane."""
LONELY_SECONDS = 1.0
"""After this time without two concurrent jobs, requests do not wait for others."""


class _Turn(Enum):
    """Instruction for a follower: continue without vectors."""

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


class _Gathered:
    """Jobs that have joined a request, which has room for `room` more texts."""

    def __init__(self, room: int) -> None:
        self.asks: list[_Ask] = []
        self.full = asyncio.Event()
        self._room = room

    def add(self, ask: _Ask) -> None:
        self.asks.append(ask)
        if self._room <= sum(len(one.texts) for one in self.asks):
            self.full.set()

    def fit(self) -> int:
        """Count how many of them fit. Those whose job was cancelled need no room."""
        self.asks = [ask for ask in self.asks if not ask.answer.done()]
        totals = itertools.accumulate(len(ask.texts) for ask in self.asks)
        return sum(total <= self._room for total in totals)


class EmbedBatches:
    """The embedding jobs of a process."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._present = 0
        self._met_at = -LONELY_SECONDS
        self._quick = False
        """Whether the last response of the embedder was fast."""
        self._gathered: _Gathered | None = None
        """Members of the next request; None: nobody is gathering."""

    @contextmanager
    def member(self, ctx: JobContext) -> Iterator[Embed]:
        """Join inside the block; yields a function that embeds up to MAX_TEXTS texts."""
        self._present += 1
        if self._present > 1:
            self._met_at = time.monotonic()
        try:
            yield partial(self._embed, ctx)
        finally:
            self._present -= 1

    async def _embed(self, ctx: JobContext, texts: Sequence[str]) -> list[bytes]:
        lonely = time.monotonic() - self._met_at > LONELY_SECONDS
        hurry = lonely or len(texts) >= MAX_TEXTS or not ctx.permit_lasts(WAIT_SECONDS)
        turn = _Turn.ALONE if hurry else _Turn.AGAIN
        while turn is _Turn.AGAIN:
            ask = _Ask(texts)
            if self._gathered is None:
                answer = await self._lead(ctx, ask)
            else:
                self._gathered.add(ask)
                answer = await self._follow(ctx, ask)
            if not isinstance(answer, _Turn):
                return answer
            turn = answer
        return await self._send(ctx, texts)

    async def _follow(self, ctx: JobContext, ask: _Ask) -> list[bytes] | _Turn:
        if not self._quick:
            return await ask.answer
        ctx.lanes.leave()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await ask.answer
        except TimeoutError:
            self._quick = False
            raise LaneBusy(EMBEDDER_LANE, 0.0, "the embedder is slow") from None

    async def _lead(self, ctx: JobContext, own: _Ask) -> list[bytes] | _Turn:
        others: list[_Ask] = []
        try:
            others = await self._gather(own)
            every = [own, *others]
            start = time.monotonic()
            vectors = await self._send(ctx, [text for ask in every for text in ask.texts])
            self._quick = time.monotonic() - start < QUICK_SECONDS
        except (EmbedderError, HttpError, Unavailable, LaneBusy) as error:
            _tell(others, _Turn.ALONE)
            answered = not isinstance(error, Unavailable) or error.status is not None
            if others and answered and not isinstance(error, LaneBusy):
                return _Turn.ALONE  # it may not have been one of our texts
            raise
        else:
            at = 0
            for ask in every:
                ask.tell(vectors[at : at + len(ask.texts)])
                at += len(ask.texts)
            return own.answer.result()
        finally:
            _tell(others, _Turn.AGAIN)  # whoever has not been told anything

    async def _gather(self, own: _Ask) -> list[_Ask]:
        """Collect the members that fit into one request beside our own texts."""
        gathered = self._gathered = _Gathered(MAX_TEXTS - len(own.texts))
        fit = 0
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    await gathered.full.wait()
            fit = gathered.fit()
        finally:
            self._gathered = None
            _tell(gathered.asks[fit:], _Turn.AGAIN)
        return gathered.asks[:fit]


def _tell(asks: Sequence[_Ask], turn: _Turn) -> None:
    for ask in asks:
        ask.tell(turn)
