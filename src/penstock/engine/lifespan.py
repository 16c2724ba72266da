"""Set-up and teardown of a worker process, before its first job and after its last."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from penstock.aio import end_tasks
from penstock.errors import LifespanError

log = logging.getLogger("penstock")


class Lifespan:
    """The app's `lifespan`, entered and left in one task: what it opens may insist on that, as task
    groups do."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._enter = enter
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Any:
        """Enter it; what it yields. LifespanError if it raises."""
        state: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._over.clear()
        self._task = asyncio.create_task(self._run(state), name="penstock-lifespan")
        try:
            await asyncio.wait([state, self._task], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await end_tasks([self._task])
            raise
        if not state.done():
            await self._task  # raises why
        return state.result()

    async def stop(self) -> None:
        """Leave it. What it raises then is logged: the work is done by now."""
        if self._task is not None:
            self._over.set()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self, state: asyncio.Future[Any]) -> None:
        try:
            async with self._enter() as yielded:
                state.set_result(yielded)
                await self._over.wait()
        except Exception as error:
            if state.done():
                log.exception("the lifespan failed after it had started")
                return
            place = traceback.extract_tb(error.__traceback__)[-1]
            raise LifespanError(
                f"the lifespan failed to start: {type(error).__name__}: {error} "
                f"({place.filename} line {place.lineno})"
            ) from error
