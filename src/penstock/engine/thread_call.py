"""Runs a sync handler, or the plain function of a step, in its own thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from penstock import runtime

log = logging.getLogger("penstock")


class ThreadCall:
    """Threads cannot be ended from outside: `result` can be given up, `returned` tells when the
    thread is really done. A daemon thread: one that never returns must not keep the process
    from ending."""

    def __init__(self, name: str, function: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()
        self.returned = asyncio.Event()
        call = copy_context()

        def target() -> None:
            value, error = None, None
            try:
                value = call.run(function)
            except BaseException as problem:
                error = problem
            try:
                self._loop.call_soon_threadsafe(self._finish, value, error)
            except RuntimeError:
                log.debug("a handler's thread returned after the event loop had closed")

        runtime.start_thread(target, f"penstock-{name}")

    @property
    def running(self) -> bool:
        return not self.returned.is_set()

    def _finish(self, value: Any, error: BaseException | None) -> None:
        self.returned.set()
        # The error travels as a value: a future refuses StopIteration, and lets
        # KeyboardInterrupt and the like end the event loop.
        if not self.result.done():
            self.result.set_result((value, error))
