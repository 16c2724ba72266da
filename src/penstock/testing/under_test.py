"""An app on a queue of its own, for one test: its own app, so that all code which enqueues with it
meets that queue, and put back afterwards as it was."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from penstock.app import Penstock
from penstock.engine.handlers import Handlers
from penstock.errors import ConfigError, PenstockError, WaitTimeout
from penstock.model.job import Job, JobState
from penstock.testing.provider import SimulatedProvider
from penstock.wiring.queues import choose_queue
from penstock.wiring.sync import SyncPenstock, blocking

if TYPE_CHECKING:
    from penstock.testing.virtual_clock import VirtualClock
    from penstock.testing.worker import SimulatedWorker

DRAIN_SECONDS = 30.0
"""A test waits no longer for its jobs, unless it says how long."""
PAGE = 1000

METHODS: dict[str, Callable[..., Any]] = {
    name: made.__wrapped__
    for name, made in vars(SyncPenstock).items()
    if not name.startswith("_") and hasattr(made, "__wrapped__")
}
"""Methods of an app that are awaited, iterated or entered."""


class OwnQueue:
    """The queue of one test, and what a test can do with it."""

    def __init__(self, app: Penstock) -> None:
        self.app = app
        self.provider = SimulatedProvider()
        """Answers requests of handlers, where the test has asked for it, or for the clock."""
        self._clock: VirtualClock | None = None
        self._observer: SyncPenstock | None = None

    @property
    def clock(self) -> VirtualClock:
        """The virtual clock, of a test that has asked for it."""
        if self._clock is None:
            raise ConfigError(
                "this test has no virtual clock: ask for the fixture penstock_clock, or own_queue("
                "app, clock=True)"
            )
        return self._clock

    @property
    def worker(self) -> SimulatedWorker:
        """The worker process on the virtual clock."""
        return self.clock.worker

    @property
    def virtual(self) -> bool:
        return self._clock is not None

    def jobs(self, kind: str | None = None) -> list[Job]:
        """All jobs that are stored, in the order they were enqueued. Blocks, also in an event loop:
        they are read over a connection of their own, as another process would."""
        found: list[Job] = []
        while page := self._page(kind, found[-1].id if found else None):
            found += page
        return found[::-1]

    def _page(self, kind: str | None, before: str | None) -> list[Job]:
        if self._clock is not None:
            app = self._clock.app
            return self._clock.run(Penstock.jobs(app, kind=kind, limit=PAGE, before=before))
        if self._observer is None:
            self._observer = SyncPenstock(self.app.on_queue(_another(self.app)))
        return self._observer.jobs(kind=kind, limit=PAGE, before=before)

    def _close(self) -> None:
        if self._observer is not None:
            self._observer.close()


_tested: list[OwnQueue] = []


def tested() -> OwnQueue:
    """The queue of the test that runs."""
    if not _tested:
        raise ConfigError(
            "no app has a queue of its own here: ask for the fixture penstock_app, or use "
            "own_queue(app)"
        )
    return _tested[-1]


@contextmanager
def own_queue(
    app: Penstock, url: str | None = None, *, clock: bool = False, provider: bool = False
) -> Iterator[OwnQueue]:
    """Give an app a queue of its own for as long as the block lasts: the one that `url` names, else
    a new file. The app is the same object, so handles and code that enqueue with it go there, too;
    afterwards it has its own queue again.

    Within the block its methods open the app themselves, and `app.drain()` also runs the jobs. With
    `clock` the queue is on the simulated computer of a `VirtualClock`. With `provider`, or `clock`,
    the requests of handlers are answered by a `SimulatedProvider`. Without, they go where they
    say."""
    if app.home is not None:
        raise ConfigError("the app is open: give it a queue of its own before it is opened")
    saved = dict(vars(app))
    own = OwnQueue(app)
    with ExitStack() as undo:
        undo.callback(_put_back, app, saved)
        folder = Path(tempfile.mkdtemp(prefix="penstock-test-"))
        undo.callback(shutil.rmtree, folder)
        handlers = {kind: one for kind, one in app.handlers.items() if not one.built_in}
        services = () if app._services is None else tuple(app._services.used)
        app.handlers = Handlers(handlers, app.handlers.settings)
        if clock:
            _bind_virtual(app, own, folder, undo, services)
        else:
            _bind(app, url or f"sqlite:///{folder}/queue.db")
            app.use(*services) if services else None
        if provider or clock:
            undo.enter_context(own.provider.installed())
        undo.callback(own._close)
        _tested.append(own)
        undo.callback(_tested.remove, own)
        yield own


def _put_back(app: Penstock, saved: dict[str, Any]) -> None:
    sync, left_open = app._sync, None
    if sync is not None:
        sync.close()
    if app.home is not None and not app.home.loop.is_closed():
        left_open = PenstockError("the test has left the app open: leave what it has entered")
    vars(app).clear()
    vars(app).update(saved)
    if left_open is not None:
        raise left_open


# In a file or on a server, by the clock of the machine.


def _bind(app: Penstock, url: str) -> None:
    settings = replace(app._settings.engine, durable=False)  # it need not survive the machine
    app._bind(choose_queue(url, settings, app.lanes, app._settings.tenant_weights))
    vars(app)["_own_url"] = url
    own = vars(app)
    entry = _Entry(app)
    for name, method in METHODS.items():
        if inspect.iscoroutinefunction(method):
            own[name] = entry.awaited(method)
        elif inspect.isasyncgenfunction(method):
            own[name] = entry.iterated(method)
    own["drain"] = entry.awaited(_drain)
    own["sync"] = lambda: _sync_of(app)


def _another(app: Penstock) -> Any:
    """The same queue, as another process has it."""
    url = vars(app)["_own_url"]
    return choose_queue(url, app._settings.engine, app.lanes, app._settings.tenant_weights)


class _Entry:
    """Opens an app for the length of a call, where nobody has opened it."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._locks: WeakKeyDictionary[Any, asyncio.Lock] = WeakKeyDictionary()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:  # of two that come at the same time, one opens it
            await self._app.__aenter__()
        try:
            yield
        finally:
            async with lock:
                await self._app.__aexit__(None, None, None)

    def awaited(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            async with self._open():
                return await method(self._app, *args, **kwargs)

        return call

    def iterated(self, method: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async with self._open():
                async for item in method(self._app, *args, **kwargs):
                    yield item

        return call


async def _drain(app: Penstock, timeout: float | None = None) -> None:
    """Run jobs until none is queued or running."""
    limit = DRAIN_SECONDS if timeout is None else timeout
    async with AsyncExitStack() as entered:
        if not any(one.running for one in app._orchestrators):
            await entered.enter_async_context(app.running())
        try:
            await Penstock.drain(app, limit)
        except WaitTimeout:
            unfinished = [JobState.QUEUED, JobState.RUNNING]
            left = await Penstock.jobs(app, states=unfinished, limit=10)
            raise WaitTimeout(
                f"work remained after {limit:g} s: {', '.join(map(_standing, left))}. What is to "
                "be done later is done at once with penstock_clock"
            ) from None


def _standing(job: Job) -> str:
    waits = f" ({job.waiting_for})" if job.waiting_for else ""
    return f"{job.kind} {job.id} is {job.state}{waits}"


class _TestedSync(SyncPenstock):
    """See `SyncPenstock`; its `drain` runs the jobs, too."""

    drain = blocking(cast(Any, _drain))


def _sync_of(app: Penstock) -> SyncPenstock:
    if app._sync is None:
        app._sync = _TestedSync(app)
    return app._sync


# On a simulated computer.


def _bind_virtual(
    app: Penstock, own: OwnQueue, folder: Path, undo: ExitStack, services: tuple[str, ...]
) -> None:
    from penstock.testing.virtual_clock import VirtualClock, VirtualSync

    if services:
        raise ConfigError(
            f"services ({', '.join(services)}) cannot be simulated: test an app that uses them "
            "without penstock_clock"
        )
    clock = own._clock = VirtualClock(app, folder)
    undo.callback(clock.close)
    own.provider = SimulatedProvider(clock.monotonic)
    own.provider.answered = lambda: clock.worker.reach("request")
    app._bind(cast(Any, _ElsewhereQueue(clock)))
    attributes = vars(app)
    for name, method in METHODS.items():
        attributes[name] = _routed(clock, method)
    attributes["sync"] = lambda: VirtualSync(clock, METHODS)


def _routed(clock: VirtualClock, method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(method):
        return lambda *args, **kwargs: clock.iterate(method, *args, **kwargs)
    if inspect.iscoroutinefunction(method):
        return lambda *args, **kwargs: clock.call(method, *args, **kwargs)

    @asynccontextmanager
    async def running(*_: Any, **__: Any) -> AsyncIterator[None]:
        yield  # the worker of the test is there

    return running


class _ElsewhereQueue:
    """Stands for a queue that is on a simulated computer: it is opened and closed there."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.now = clock.time

    async def open(self) -> None:
        """It is open."""

    async def close(self) -> None:
        """It is closed by the end of the test."""

    def __getattr__(self, name: str) -> Any:
        if name == "schedules":
            return _ElsewhereSchedules(self._clock)
        if inspect.iscoroutinefunction(found := getattr(self._clock.app.queue, name, None)):
            return partial(self._clock.ask, found)
        raise PenstockError(
            f"on the virtual clock the queue is reached by the app's own methods, and not by "
            f"{name!r}"
        )


class _ElsewhereSchedules:
    """The schedules of that queue."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return partial(self._clock.ask, getattr(self._clock.app.queue.schedules, name))
