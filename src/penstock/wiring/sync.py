"""The app for programs that do not await: each method blocks until the event loop has done it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, suppress
from functools import wraps
from inspect import isasyncgenfunction, iscoroutine, iscoroutinefunction
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from penstock import runtime
from penstock.app import Penstock
from penstock.engine.orchestrator import JobOrchestrator
from penstock.errors import QueueError
from penstock.runtime.calling_thread import CallingThread
from penstock.wiring.schedules import SyncSchedules

log = logging.getLogger("penstock")

P = ParamSpec("P")
T = TypeVar("T")


@overload
def blocking(
    method: Callable[Concatenate[Penstock, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncPenstock, P], T]: ...


@overload
def blocking(
    method: Callable[Concatenate[Penstock, P], AsyncIterator[T]],
) -> Callable[Concatenate[SyncPenstock, P], Iterator[T]]: ...


@overload
def blocking(
    method: Callable[Concatenate[Penstock, P], AbstractAsyncContextManager[T]],
) -> Callable[Concatenate[SyncPenstock, P], AbstractContextManager[T]]: ...


def blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the app as one that blocks: its result, an iterator, or a context manager."""
    if iscoroutinefunction(method):

        @wraps(method)
        def call(self: SyncPenstock, /, *args: Any, **kwargs: Any) -> Any:
            return self.run(method(self.app, *args, **kwargs))

        return call
    if isasyncgenfunction(method):

        @wraps(method)
        def iterate(self: SyncPenstock, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
            return self._iterate(method(self.app, *args, **kwargs))

        return iterate

    @wraps(method)
    def enter(self: SyncPenstock, /, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
        return self._entered(method(self.app, *args, **kwargs))

    return enter


class SyncPenstock:
    """An app whose methods block instead of being awaited; `app.sync()` gives it.

    Where the app is open already, in an event loop of another thread, calls are done there. Else
    the first call, or `with`, opens it in a thread with an event loop of its own. Any thread may
    call, but not that of the loop. A process that was forked from one in which the app was open
    gets a QueueError.
    """

    def __init__(self, app: Penstock) -> None:
        self.app = app
        """The app itself."""
        self._lock = threading.Lock()
        self._process = runtime.process_id()
        self._entered_by = 0
        self._thread: _LoopThread | None = None

    enqueue = blocking(Penstock.enqueue)
    enqueue_many = blocking(Penstock.enqueue_many)
    get = blocking(Penstock.get)
    wait = blocking(Penstock.wait)
    result = blocking(Penstock.result)
    jobs = blocking(Penstock.jobs)
    cancel = blocking(Penstock.cancel)
    rerun = blocking(Penstock.rerun)
    signal = blocking(Penstock.signal)
    steps = blocking(Penstock.steps)
    follow = blocking(Penstock.follow)
    changes = blocking(Penstock.changes)
    feed = blocking(Penstock.feed)
    stop_log = blocking(Penstock.stop_log)
    reopen_log = blocking(Penstock.reopen_log)
    drain = blocking(Penstock.drain)
    running = blocking(Penstock.running)
    dead_letters = blocking(Penstock.dead_letters)
    dead_groups = blocking(Penstock.dead_groups)
    redrive = blocking(Penstock.redrive)
    discard = blocking(Penstock.discard)
    counts = blocking(Penstock.counts)
    processes = blocking(Penstock.processes)
    periodic = blocking(Penstock.periodic)
    lane_infos = blocking(Penstock.lane_infos)
    apply_lanes = blocking(Penstock.apply_lanes)
    control_lane = blocking(Penstock.control_lane)
    limit_lane = blocking(Penstock.limit_lane)
    forecast = blocking(Penstock.forecast)
    usage = blocking(Penstock.usage)

    @property
    def schedules(self) -> SyncSchedules:
        """Schedules that are made and changed while everything runs."""
        return SyncSchedules(self)

    def run(self, awaitable: Awaitable[T]) -> T:
        """Await something in the loop where the app is open, and block until it is done:
        `q.run(resize.enqueue(url="x"))`. Interrupted, as by Ctrl-C, it is cancelled there."""
        try:
            loop = self._open()
        except BaseException:
            if iscoroutine(awaitable):
                awaitable.close()
            raise
        try:
            return CallingThread().wait(_awaited(awaitable), loop)
        except CancelledError:
            raise QueueError("the app was closed before the call was done") from None

    def close(self) -> None:
        """Close the app, if it was opened by a call; the next call opens it again. A process that
        ends without loses nothing."""
        with self._one_at_a_time():
            thread, self._thread = self._thread, None
        if thread is not None and thread.process == runtime.process_id():
            thread.close()

    def __enter__(self) -> Self:
        with self._one_at_a_time():
            self._entered_by += 1
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why: object) -> None:
        with self._one_at_a_time():
            self._entered_by -= 1
            last = self._entered_by == 0
        if last:
            self.close()

    def _one_at_a_time(self) -> threading.Lock:
        if self._process != runtime.process_id():  # forked, maybe while another thread held it
            self._process = runtime.process_id()
            self._lock = threading.Lock()
        return self._lock

    def _open(self) -> asyncio.AbstractEventLoop:
        """The loop in which the app is open."""
        with self._one_at_a_time():
            if (home := self.app.home) is None:
                self._thread = _LoopThread(self.app)
                home = self.app.home
                assert home is not None, "the thread has opened it"
            home.check()
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is home.loop:
                raise QueueError(
                    "this is the event loop in which the app is open, and blocking would stop it: "
                    "await the app's own methods here"
                )
        return home.loop

    def _iterate(self, items: AsyncIterator[T]) -> Generator[T, None, None]:
        stream: Any = items
        self._open()
        home = self.app.home
        try:
            while True:
                if self.app.home is not home:  # its loop has ended it
                    raise QueueError("the app was closed before all was read")
                try:
                    yield self.run(anext(stream))
                except StopAsyncIteration:
                    return
        finally:
            if self.app.home is home:  # closed, it is not opened again for this
                self.run(stream.aclose())

    @contextmanager
    def _entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        entered = self.run(manager.__aenter__())
        try:
            yield entered
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and isinstance(entered, JobOrchestrator):
                self._interrupt(entered)
            if not self.run(manager.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self.run(manager.__aexit__(None, None, None))

    def _interrupt(self, orchestrator: JobOrchestrator) -> None:
        """Stop as `penstock worker` does after Ctrl-C, and at once after another."""
        try:
            if busy := orchestrator.status["busy"]:
                log.warning(
                    "waiting up to %g s for running jobs (%d); Ctrl-C again returns them to the "
                    "queue",
                    self.app.config.engine.grace_seconds,
                    busy,
                )
            self.run(orchestrator.stop())
        except KeyboardInterrupt:
            self.run(orchestrator.stop(0))


class _LoopThread:
    """A thread with an event loop in which an app is open."""

    def __init__(self, app: Penstock) -> None:
        self.process = runtime.process_id()
        self._app = app
        self._opened: Future[None] = Future()
        self._ended: Future[None] = Future()
        runtime.start_thread(self._run, "penstock-sync")
        self._opened.result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._ended.result()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            told = self._ended if self._opened.done() else self._opened
            told.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._app:
            self._opened.set_result(None)
            await self._stop.wait()


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable
