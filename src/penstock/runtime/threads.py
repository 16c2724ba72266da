"""The two kinds of threads that run for as long as their owner does."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Ticking:
    """Calls `step` again and again in a thread of its own: after `pause` seconds, and from then on
    after as many as it has returned, or as soon as `alarm` is set. It ends when that is None."""

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        pause: float,
        alarm: threading.Event | None = None,
    ) -> None:
        self._step = step
        self._pause = pause
        self._alarm = alarm or threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End it, once a step under way is done."""
        self._stopped = True
        self._alarm.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        pause: float | None = self._pause
        while pause is not None:
            self._alarm.wait(pause)
            self._alarm.clear()
            pause = None if self._stopped else self._step()


class Batches(Generic[T]):
    """Hands what it is given to `perform`, in a thread of its own: all that has gathered meanwhile,
    in order, at most `together` at a time. `end` is called there as the last thing."""

    def __init__(
        self, name: str, perform: Callable[[list[T]], None], end: Callable[[], None], together: int
    ) -> None:
        self._perform = perform
        self._end = end
        self._together = together
        self._inbox: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self.put: Callable[[T], None] = self._inbox.put
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How much it was handed and has not begun."""
        return self._inbox.qsize()

    def close(self) -> None:
        """Finish what was handed in, then end the thread; blocks until then."""
        self._inbox.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._inbox.get()) is not None:
            batch: list[T] = [first]
            last = False
            while len(batch) < self._together and not last:
                try:
                    item = self._inbox.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    last = True
                else:
                    batch.append(item)
            self._perform(batch)
            if last:
                break
        self._end()
