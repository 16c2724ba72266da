"""A thread that waits for an event loop, and meanwhile does what has to be done in it.

A connection to a database may belong to the thread that made it. What is awaited on behalf of a
thread finds that thread by `calling_thread`, and has it do such things while it waits.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

LOOK_SECONDS = 1.0
"""Between two looks whether the event loop has ended: one that is closed drops what it was given
last, and tells nobody."""

_calling: ContextVar[CallingThread | None] = ContextVar("penstock_calling_thread", default=None)


def calling_thread() -> CallingThread | None:
    """The thread that waits for what is being done, if one does."""
    thread = _calling.get()
    return None if thread is None or thread.ended else thread


class CallingThread:
    """The thread it is made in, for one `wait`."""

    def __init__(self) -> None:
        self.ended = False
        """Whether it waits no more. Tasks that were begun meanwhile may go on."""
        self._ending = threading.Lock()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()

    def wait(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
        """Have an event loop of another thread do this; what it came to. CancelledError if that
        loop ends before."""
        before = _calling.set(self)
        try:
            future = asyncio.run_coroutine_threadsafe(work, loop)  # in a copy of this context
        finally:
            _calling.reset(before)
        future.add_done_callback(lambda _: self._calls.put(None))
        try:
            while (call := self._next(loop)) is not None:
                call.make()
            return future.result()
        except BaseException:  # if the program is interrupted, the loop need not go on
            future.cancel()
            raise
        finally:
            self._end()

    def _end(self) -> None:
        """Give up what it was still to do: nobody does that any more."""
        with self._ending:
            self.ended = True
        with suppress(queue.Empty):
            while True:
                if (call := self._calls.get_nowait()) is not None:
                    call.give_up()

    def _next(self, loop: asyncio.AbstractEventLoop) -> _Call | None:
        while True:
            try:
                return self._calls.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if loop.is_closed() and self._calls.empty():
                    raise CancelledError from None

    async def call(self, function: Callable[[], T]) -> T:
        """In the event loop: have the thread call this. It is not given up once it is under way:
        whoever uses the connection next finds nobody else using it."""
        call = _Call(function)
        with self._ending:
            if self.ended:
                call.outcome.cancel()
            else:
                self._calls.put(call)
        value: T = await finished(call.outcome)
        return value


class _Call:
    """A call that the event loop waits for, and the thread makes."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self._loop.create_future()

    def make(self) -> None:
        try:
            value = self._function()
        except Exception as error:
            self._loop.call_soon_threadsafe(self.outcome.set_exception, error)
        except BaseException:  # it is the program that is interrupted, not the loop
            self.give_up()
            raise
        else:
            self._loop.call_soon_threadsafe(self.outcome.set_result, value)

    def give_up(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.outcome.cancel)


async def finished(call: asyncio.Future[T]) -> T:
    """What a call came to. Who is cancelled meanwhile waits for its end all the same."""
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        while not call.done():
            try:
                await asyncio.wait([call])
            except asyncio.CancelledError:
                continue
        if not call.cancelled():
            call.exception()  # looked at: nobody else will
        raise
