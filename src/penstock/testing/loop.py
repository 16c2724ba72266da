"""A simulated event loop: a virtual clock, and processes whose turns a seed decides.

All processes of a simulation run in one thread. Each has a queue of callbacks of its own; whose
callback is run next is drawn from the seed, so that every order in which processes can meet has a
seed. Time passes only while nobody has anything to do.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any

STEP_SECONDS = 1e-5
"""Virtual time that a callback takes."""
LONGEST_BURST = 8
"""Callbacks of one process in a row, at most: what a scheduler gives it before its next turn."""


MOST_STEPS = 100_000
"""Callbacks of a simulation; some thousands are usual."""


MOST_FINALLY = 100
"""Times that a coroutine may await something while it is ended."""


class Callback:
    """A callback that runs when its turn comes; for asyncio, a `TimerHandle`."""

    __slots__ = ("args", "at", "call", "cancelled_", "context", "process")

    def __init__(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        context: Context | None,
        at: float = 0.0,
    ) -> None:
        self.call = call
        self.args = args
        self.context = copy_context() if context is None else context
        self.process: SimulatedProcess = self.context[current]
        self.at = at
        self.cancelled_ = False

    def cancel(self) -> None:
        self.cancelled_ = True

    def cancelled(self) -> bool:
        return self.cancelled_

    def when(self) -> float:
        return self.at


class Stuck(Exception):
    """Nobody has anything to do and nobody waits for a time, or all are busy without an end."""


class SimulatedProcess:
    """A process: it can be killed at any callback, and stand still for a time."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.pid = number
        self.alive = True
        self.faulty = True
        """Whether the disk may be full for it: a scenario is spared, and written more simply."""
        self.host = "simulated"
        self.clock_offset = 0.0
        """How far the clock of its host is ahead of others."""
        self.frozen_until = 0.0
        self.lapses = 0
        """How often it has lost its lease, or may have while it stood still."""
        self.steps_left: int | None = None
        """Callbacks until it is killed; None: it is not."""
        self.stop: asyncio.Event | None = None
        """Asks it to stop, where it is a worker process that runs."""
        self.ready: deque[Callback] = deque()
        self.waits_for_turn = False
        """Whether it stands among those that have something to do."""
        self.locks: list[tuple[int, int]] = []
        """Files that it has locked, with their inodes; unlocked when it dies."""
        self.context = copy_context()
        self.context.run(current.set, self)

    def __repr__(self) -> str:
        return self.name


current: ContextVar[SimulatedProcess] = ContextVar("simulated process")
"""Whose code is running."""


def _end(coroutine: Any) -> None:
    """Close a coroutine, whatever it awaits in its `finally` blocks."""
    for _ in range(MOST_FINALLY):
        try:
            coroutine.close()
        except RuntimeError:  # it has awaited something once more
            continue
        except BaseException:  # what a `finally` block says of a computer that is off
            return
        return


class SimulatedLoop(asyncio.AbstractEventLoop):
    """See above. `killed` is called with a process at the callback at which it dies."""

    def __init__(
        self, chance: random.Random, killed: Callable[[SimulatedProcess], None] = lambda _: None
    ) -> None:
        self.chance = chance
        self.clock = 1000.0
        self.steps = 0
        self.errors: list[dict[str, Any]] = []
        """What `call_exception_handler` was told of processes that live."""
        self._killed = killed
        self._timers: list[tuple[float, int, Callback]] = []
        self._timer_number = 0
        self._with_work: list[SimulatedProcess] = []
        self._frozen: list[SimulatedProcess] = []
        self._kept: list[Callback] = []
        """Callbacks of the dead: dropping them would run their `finally` blocks."""
        self._contexts: dict[asyncio.Task[Any], Context] = {}
        self._generators: list[Any] = []
        self._closed = False

    # What asyncio asks of an event loop.

    def time(self) -> float:
        return self.clock

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[Any]:
        if self._closed:
            coro.close()
            raise RuntimeError("the simulation is over")
        context = context or copy_context()
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._contexts[task] = context
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Callback:
        made = Callback(callback, args, context)
        self._add(made)
        return made

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Callback:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> Callback:
        return self.call_at(self.clock + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> Callback:
        made = Callback(callback, args, context, when)
        self._timer_number += 1
        heapq.heappush(self._timers, (when, self._timer_number, made))
        return made

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(self.chance.uniform(0.0, 0.01), run)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed and current.get().alive:
            self.errors.append(context)

    # Processes.

    def start(self, process: SimulatedProcess, main: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `main` as the main task of a process."""
        return process.context.run(self.create_task, main, name=process.name)

    def kill(self, process: SimulatedProcess) -> None:
        """End it here and now: nothing of it runs any more, `finally` blocks included."""
        process.alive = False
        self._kept += process.ready
        process.ready.clear()
        self._rest(process)
        if process in self._frozen:
            self._frozen.remove(process)
        self._killed(process)

    def freeze(self, process: SimulatedProcess, seconds: float) -> None:
        """Let a process stand still, its timers and threads too."""
        process.lapses += 1
        process.frozen_until = max(process.frozen_until, self.clock + seconds)
        self._rest(process)
        if process not in self._frozen:
            self._frozen.append(process)

    def run_until(self, done: Callable[[], bool], until: float) -> bool:
        """Run everybody until `done()`, or until that time; whether it is done."""
        with self._running():
            while not done():
                if not self._turn(until):
                    return done()
            return True

    def close(self) -> None:
        """End what is left, without a word: its `finally` blocks see a computer that is off."""
        self._closed = True
        with self._running():
            for task, context in self._contexts.items():
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    context.run(_end, task.get_coro())
            for generator in self._generators:
                # Ending a task leaves alone what a generator awaits for it.
                if hasattr(generator.ag_await, "close"):
                    _end(generator.ag_await)

    @contextmanager
    def _running(self) -> Iterator[None]:
        before, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        # Run from a task of another loop, such as that of a test: it stands still meanwhile.
        task = None if before is None else asyncio.current_task(before)
        if before is not None and task is not None:
            asyncio.tasks._leave_task(before, task)
        asyncio._set_running_loop(self)
        # Generators of the dead are kept as they are, as the rest of them is.
        sys.set_asyncgen_hooks(firstiter=self._generators.append, finalizer=lambda _: None)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)
            if before is not None and task is not None:
                asyncio.tasks._enter_task(before, task)
            sys.set_asyncgen_hooks(*hooks)

    def _add(self, callback: Callback) -> None:
        process = callback.process
        if not process.alive:
            self._kept.append(callback)
            return
        process.ready.append(callback)
        if not process.waits_for_turn and process not in self._frozen:
            process.waits_for_turn = True
            self._with_work.append(process)

    def _rest(self, process: SimulatedProcess) -> None:
        """It has nothing to do, or cannot."""
        if process.waits_for_turn:
            process.waits_for_turn = False
            self._with_work.remove(process)

    def _turn(self, until: float) -> bool:
        """Give one process its turn; False when the time is over."""
        if self.steps > MOST_STEPS:
            raise Stuck(f"livelock: {self.steps:,} callbacks, and no end")
        while True:
            self._wake()
            if self._with_work:
                break
            at = self._timers[0][0] if self._timers else until
            for one in self._frozen:
                at = min(at, one.frozen_until)
            if at >= until:
                if not self._timers and not self._frozen:
                    raise Stuck("nobody has anything to do, or waits for a time")
                self.clock = until
                return False
            self.clock = max(self.clock, at)
        ready = self._with_work
        chosen = int(self.chance.random() * len(ready)) if len(ready) > 1 else 0
        self._burst(ready[chosen])
        return True

    def _burst(self, process: SimulatedProcess) -> None:
        ready = process.ready
        for _ in range(1 + int(self.chance.random() * (LONGEST_BURST - 1))):
            if not ready:
                break
            if process.steps_left is not None:
                process.steps_left -= 1
                if process.steps_left < 0:
                    self.kill(process)
                    return
            callback = ready.popleft()
            self.steps += 1
            self.clock += STEP_SECONDS
            if not callback.cancelled_:
                try:
                    callback.context.run(callback.call, *callback.args)
                except Exception as error:
                    what = {"message": f"Exception in callback {callback.call}", "exception": error}
                    callback.context.run(self.call_exception_handler, what)
            if process.frozen_until > self.clock:
                return
        if not ready:
            self._rest(process)

    def _wake(self) -> None:
        """Queue the callbacks whose time has come, and let go on who stood still."""
        clock = self.clock
        if self._frozen:
            for process in [one for one in self._frozen if one.frozen_until <= clock]:
                self._frozen.remove(process)
                if process.ready:
                    process.waits_for_turn = True
                    self._with_work.append(process)
        timers = self._timers
        while timers and timers[0][0] <= clock:
            timer = heapq.heappop(timers)[2]
            if not timer.cancelled_:
                self._add(timer)
