"""Threads of plain handlers on a simulated computer: each runs while the event loop stands still,
and stands still while the loop runs, so that nothing depends on who is faster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from typing import Any

from penstock.testing.loop import SimulatedLoop

_here = threading.local()


class HandlerThread:
    """A thread that takes turns with the event loop that has started it."""

    def __init__(self, loop: SimulatedLoop, target: Callable[[], None], name: str) -> None:
        self._loop = loop
        self._context = copy_context()
        self._its_turn, self._loops_turn = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        self._thread = threading.Thread(target=self._run, args=(target,), name=name, daemon=True)
        self._thread.start()
        self.wake()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def wake(self) -> None:
        """Give it a turn soon."""
        self._context.run(self._loop.call_soon, self._turn)

    def wait(self) -> None:
        """In the thread: give the turn back until it is woken. CancelledError where all is over."""
        self._loops_turn.release()
        self._its_turn.acquire()
        if self._over:
            raise CancelledError

    def end(self) -> None:
        """Unwind it, and wait until it has ended."""
        while self.alive:
            self._over = True
            self._its_turn.release()
            self._thread.join(0.1)

    def _turn(self) -> None:
        self._its_turn.release()
        self._loops_turn.acquire()

    def _run(self, target: Callable[[], None]) -> None:
        self._its_turn.acquire()
        _here.thread = self
        try:
            if not self._over:
                self._context.copy().run(target)
        finally:
            self._loops_turn.release()


def this_thread() -> HandlerThread | None:
    """The one that this is called in."""
    thread: HandlerThread | None = getattr(_here, "thread", None)
    return thread


def thread_result(future: Future[Any], timeout: float | None = None) -> Any:
    """See `penstock.runtime`."""
    thread = this_thread()
    if thread is not None and not future.done():
        future.add_done_callback(lambda _: thread.wake())
        thread.wait()
    return future.result(timeout)


class HandlerQueue:
    """See `penstock.runtime.thread_queue`: filled by the loop, emptied by one thread."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._waits: HandlerThread | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        thread, self._waits = self._waits, None
        if thread is not None:
            thread.wake()

    def get(self) -> Any:
        while not self._items:
            self._waits = this_thread()
            assert self._waits is not None, "plain handlers have a thread of their own"
            self._waits.wait()
        return self._items.popleft()
