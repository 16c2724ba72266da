"""Ends waits at once when the server is stopping."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from penstock.aio import end_tasks

T = TypeVar("T")


class Draining:
    """Set once, by the first signal."""

    def __init__(self) -> None:
        self.begun = False
        # One for each that waits: callbacks of one future that thousands share are a list, and
        # to take one out of it goes through all.
        self._waiting: set[asyncio.Future[None]] = set()
        self._others: list[Callable[[], None]] = []

    def also(self, begin: Callable[[], None]) -> None:
        """Register a callback for components that have their own waits."""
        self._others.append(begin)

    def begin(self) -> None:
        self.begun = True
        for begin in self._others:
            begin()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def first(
        self,
        task: asyncio.Task[Any],
        timeout: float | None = None,
        also: asyncio.Task[Any] | None = None,
    ) -> bool:
        """Whether `task` finishes before the server is told to stop, before `also` does, and in
        time. It continues otherwise."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.begun:
            told.set_result(None)
        self._waiting.add(told)
        try:
            ends = [task, told] if also is None else [task, told, also]
            await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(told)
        return task.done()

    async def unless(
        self,
        work: Coroutine[Any, Any, T],
        receive: Receive | None = None,
        check: Callable[[], Awaitable[None]] | None = None,
        every: float | None = None,
    ) -> T | None:
        """Await `work`; None if the server is told to stop first, which cancels it: only for waits.
        Raises ClientDisconnect if `receive` says that the caller has hung up. `check` is called at
        that interval, and what it raises also ends the wait."""
        task = asyncio.create_task(work)
        leaving = None if receive is None else asyncio.create_task(left(receive))
        try:
            while not (done := await self.first(task, every, leaving)):
                if leaving is not None and leaving.done():
                    raise ClientDisconnect
                if self.begun or check is None:
                    break
                await check()
            return task.result() if done else None
        finally:
            await end_tasks([one for one in (task, leaving) if one is not None and not one.done()])


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; raises ClientDisconnect, and cancels it, when the caller hangs up."""
    task, leaving = asyncio.create_task(work), asyncio.create_task(left(receive))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        await end_tasks([one for one in (task, leaving) if not one.done()])


async def left(receive: Receive) -> None:
    """Return when the caller has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
