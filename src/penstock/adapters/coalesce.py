"""Coalesces concurrent calls of one operation.

One of those who ask does it for all who wait at that moment. Nobody waits for company: what is
asked for alone is done at once. If whoever does it is cancelled, the next one does it again, so
it must be something that may be done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _Ask(Generic[A, R]):
    asked: A
    answers: list[R | Exception] = field(default_factory=list)
    """None yet, or one."""

    def answer(self) -> R:
        (answer,) = self.answers
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass(slots=True, eq=False)
class _Line(Generic[A, R]):
    """Those who ask under one key, in their order, which is also that of the lock."""

    asks: list[_Ask[A, R]] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Coalesced(Generic[K, A, R]):
    """`work` is given what is asked for under one key, `most` at a time, and gives an answer or an
    error for each; what it raises is raised to all of them."""

    def __init__(
        self, work: Callable[[K, Sequence[A]], Awaitable[Sequence[R | Exception]]], most: int
    ) -> None:
        self._work = work
        self._most = most
        self._lines: dict[K, _Line[A, R]] = {}

    async def ask(self, key: K, asked: A) -> R:
        line = self._lines.setdefault(key, _Line())
        mine: _Ask[A, R] = _Ask(asked)
        line.asks.append(mine)
        try:
            async with line.lock:
                if not mine.answers:
                    waiting = [ask for ask in line.asks if not ask.answers]
                    await self._do(key, waiting[: self._most])
        finally:
            line.asks.remove(mine)
            if not line.asks:
                del self._lines[key]
        return mine.answer()

    async def _do(self, key: K, asks: Sequence[_Ask[A, R]]) -> None:
        answers: Sequence[R | Exception]
        try:
            answers = await self._work(key, [ask.asked for ask in asks])
        except Exception as error:
            answers = [error] * len(asks)
        for ask, answer in zip(asks, answers, strict=True):
            ask.answers.append(answer)
