"""Handlers that raise what nobody expects."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import JobContext, Penstock
from tests.support.side_effects import Side


class Weird(BaseException):
    """Not an Exception, as KeyboardInterrupt is not."""


class Mute(Exception):
    """Cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no comment")


class Undecided(Exception):
    @property
    def retryable(self) -> bool:
        raise RuntimeError("who knows")


PROBLEMS: dict[str, BaseException] = {
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "StopIteration": StopIteration("a"),
    "StopAsyncIteration": StopAsyncIteration("a"),
    "CancelledError": asyncio.CancelledError(),
    "BaseExceptionGroup": BaseExceptionGroup("both", [Weird(), ValueError()]),
    "Weird": Weird("oh"),
    "Mute": Mute(),
    "Undecided": Undecided("hm"),
    "surrogate": ValueError("file name \udcff in an error"),
    "nul": ValueError("before\x00after"),
    "huge": ValueError("x" * 10_000_000),
    "recursion": RecursionError("deep"),
    "memory": MemoryError(),
}


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    @app.job("raises", max_retries=1)
    async def raises(ctx: JobContext, problem: str) -> None:
        side.note(ctx)
        raise PROBLEMS[problem]

    @app.job("raises_later", max_retries=1)
    async def raises_later(ctx: JobContext, problem: str) -> None:
        side.note(ctx)
        await asyncio.sleep(0.01)
        raise PROBLEMS[problem]

    @app.job("raises_in_thread", max_retries=1)
    def raises_in_thread(ctx: JobContext, problem: str) -> None:
        side.note(ctx)
        raise PROBLEMS[problem]

    @app.job("work")
    async def work(ctx: JobContext, n: int) -> int:
        return n

    return app
