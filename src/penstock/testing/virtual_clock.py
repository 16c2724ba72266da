"""The virtual clock of a test: the simulator's, driven from the thread that asks.

The app of the test has its queue on a simulated computer, and so has one worker process. Nothing
runs there but within a call: what the test asks of the app is done at once, while the worker stands
still; when time is let pass, the worker does what is due.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

from penstock import runtime
from penstock.adapters.queue import Joining
from penstock.app import Penstock
from penstock.errors import ConfigError, PenstockError, ValidationError
from penstock.model import ids
from penstock.testing.handler_threads import HandlerQueue, HandlerThread, this_thread, thread_result
from penstock.testing.loop import SimulatedLoop, SimulatedProcess, Stuck
from penstock.testing.machine import Machine, SimulatedQueue
from penstock.testing.worker import MortalMember, SimulatedWorker
from penstock.wiring.schedules import SyncSchedules

log = logging.getLogger("penstock.testing")

T = TypeVar("T")

MOMENT = 0.05
"""Seconds in which the engine does what is due: between some looks it makes a short pause. Whatever
time is let pass, it goes on for so much longer."""
CALL_SECONDS = 0.01
"""A call that is not done by then waits for something: time has to pass."""
RESTART_SECONDS = 0.5
"""How long it takes to start a worker process again that was killed."""
STRIDE = 1.0
"""Seconds of one step through time that cannot be skipped."""

BUSY = "SELECT 1 FROM jobs WHERE state = 'running' OR (state = 'queued' AND run_at <= ?) LIMIT 1"
"""Whether something may happen at any time: a job runs, or waits for a lane."""
DUE = (
    "SELECT min(run_at), min(deadline), (SELECT min(probed_at + probe_seconds) FROM lanes"
    " WHERE step > 0 AND coalesce(health_url, address) IS NOT NULL),"
    " (SELECT min(next_at) FROM schedules)"
    " FROM jobs WHERE state = 'queued'"
)
"""When else something happens: a job is due or too late, a lane in trouble is probed, or a schedule
has a tick."""

NO_NETWORK = (
    "handlers have no network of their own on the virtual clock: ask with ctx.http, which "
    "penstock_provider answers, or test this handler without penstock_clock"
)


class Least(random.Random):
    """Chance for a computer that takes no time: whatever may take long takes the least."""

    def uniform(self, a: float, b: float) -> float:
        return a


class TestedLoop(SimulatedLoop):
    """The event loop of a computer in a test. Handlers are people's own: they may ask for more than
    a simulated loop has, and are told so."""


def _refused(*_: Any, **__: Any) -> Any:
    raise PenstockError(NO_NETWORK)


for _name in (
    "add_reader",
    "add_writer",
    "connect_accepted_socket",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "getaddrinfo",
    "getnameinfo",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_sendall",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
):
    setattr(TestedLoop, _name, _refused)


class TestedComputer(Machine):
    """A computer on which nothing takes time but waiting, and whose clock begins now."""

    def __init__(self, folder: Path, died: Callable[[SimulatedProcess], None]) -> None:
        super().__init__(0, folder, died)
        self.chance = Least(0)
        self.loop: SimulatedLoop = TestedLoop(self.chance, self._bury)  # type: ignore[abstract]
        self._since = runtime.now() - self.loop.clock
        self.threads: list[HandlerThread] = []
        self._last_id = 0

    def server_time(self) -> float:
        return self._since + self.loop.clock

    def commit_seconds(self) -> float:
        return 0.0

    async def in_thread(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        await asyncio.sleep(0)
        return call(*args, **named)

    def start_thread(self, target: Callable[[], None], name: str) -> None:
        self.threads = [one for one in self.threads if one.alive]
        self.threads.append(HandlerThread(self.loop, target, name))

    @contextmanager
    def running(self) -> Iterator[None]:
        replaced = {
            "uniform": lambda least, most: most,  # retries wait as long as they may
            "thread_queue": HandlerQueue,
            "thread_result": thread_result,
        }
        with super().running(), runtime.replaced(**replaced):
            ids._last = self._last_id
            try:
                yield
            finally:
                self._last_id = ids._last

    def close(self) -> None:
        for thread in self.threads:
            thread.end()
        super().close()


class MortalQueue(SimulatedQueue):
    """The queue of a worker process that may be killed."""

    worker: SimulatedWorker

    def new_member(self, joining: Joining) -> MortalMember:
        return MortalMember(self, joining, self.worker)


class VirtualClock:
    """The clock of a test. It stands still but for `advance`, and for calls that wait."""

    def __init__(self, app: Penstock, folder: Path) -> None:
        if any(handler.built_in for handler in app.handlers.values()):
            raise ConfigError(
                "services cannot be simulated: test an app that uses them without penstock_clock"
            )
        self._computer = TestedComputer(folder, self._died)
        self._loop = self._computer.loop
        self._lock = threading.RLock()
        self._base = self._computer.process("computer")
        self._client = self._computer.process("test")
        self._process: SimulatedProcess | None = None
        """That of the worker; None until time passes, and while none has replaced a dead one."""
        self._working: asyncio.Task[None] | None = None
        self._limits: list[float] = []
        """Times at which calls that wait give up."""
        self.worker = SimulatedWorker(self._loop)
        self.app = app.on_queue(self._queue(app, SimulatedQueue))
        """The app, as the process of the test has it."""
        self.run(self.app.__aenter__())

    # What a test uses.

    def now(self) -> datetime:
        """What time it is here."""
        return datetime.fromtimestamp(self._computer.server_time(), UTC)

    def time(self) -> float:
        """The same in seconds since 1970."""
        return self._computer.server_time()

    def monotonic(self) -> float:
        """Seconds since some moment before the test."""
        return self._loop.clock

    def advance(self, by: timedelta | float | None = None, **parts: float) -> None:
        """Let time pass, given as `advance(hours=3, minutes=5)`, as a timedelta or as seconds, and
        have everything done that is due until then: retries, schedules, sleeps, deadlines, lanes.
        A handler that waits for longer goes on with the next call."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else float(by or 0.0)
        seconds += timedelta(**parts).total_seconds()
        if seconds < 0:
            raise ValidationError(f"time goes forward only, not by {seconds:g} s")
        with self._entered():
            self._pass(self._loop.clock + seconds, lambda: False)

    # What the app of the test is made of.

    def inside(self) -> bool:
        """Whether this is called by what runs on the computer."""
        return asyncio._get_running_loop() is self._loop

    def run(self, work: Coroutine[Any, Any, T], limit: float | None = None) -> T:
        """Do this on the computer, and return what comes of it: at once if it can be done at once,
        else time passes, for no more than `limit` seconds."""
        if this_thread() is not None:  # a plain handler's
            asked: T = thread_result(asyncio.run_coroutine_threadsafe(work, self._loop))
            return asked
        with self._entered():
            done = self._loop.start(self._client, work)
            since, self._loop.steps = self._loop.clock, 0
            with self._limited(limit):
                if not self._loop.run_until(done.done, since + CALL_SECONDS):
                    self._pass(inf, done.done)
            result: T = done.result()
            return result

    async def call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A method of the app, from whichever event loop."""
        limit = _limit(method, self.app, args, kwargs)
        work = method(self.app, *args, **kwargs)
        if self.inside():
            with self._limited(limit):
                return await work
        return self.run(work, limit)

    async def ask(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A method of the queue, from whichever event loop."""
        work = method(*args, **kwargs)
        return await work if self.inside() else self.run(work)

    async def iterate(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The same for one that is an async iterator."""
        items: AsyncIterator[Any] = method(self.app, *args, **kwargs)
        while True:
            try:
                yield await anext(items) if self.inside() else self.run(_next(items))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """End all that runs there, without a word."""
        with self._lock, self._computer.running():
            self._computer.close()

    # The worker process.

    def _queue(self, app: Penstock, kind: type[SimulatedQueue]) -> SimulatedQueue:
        settings = app.config.engine
        return kind(
            self._computer,
            weights=app.config.tenant_weights,
            lane_config=app.lanes.config,
            ageing_seconds=settings.ageing_seconds,
            retention_seconds=settings.retention_seconds,
        )

    def _start_worker(self) -> None:
        self._process = self._computer.process("worker")
        self._working = self._loop.start(self._process, self._work())

    async def _work(self) -> None:
        queue = self._queue(self.app, MortalQueue)
        assert isinstance(queue, MortalQueue)
        queue.worker = self.worker
        app = self.app.on_queue(queue)
        app.handlers = self.worker.doomed(self.app.handlers)
        async with app.running():
            await asyncio.Event().wait()

    def _died(self, process: SimulatedProcess) -> None:
        if process is self._process:
            self._process = self._working = None
            self._base.context.run(self._loop.call_later, RESTART_SECONDS, self._start_worker)

    # Time.

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Run here, and have the worker stand still afterwards."""
        if self.inside():
            raise PenstockError("the virtual clock is for tests: handlers cannot drive it")
        with self._lock, self._computer.running():
            try:
                yield
            except Stuck as error:
                raise PenstockError(f"on the virtual clock: {error}") from None
            finally:
                if self._process is not None:
                    self._loop.freeze(self._process, inf)
                for told in self._loop.errors:
                    log.error("%s", told.get("message"), exc_info=told.get("exception"))
                self._loop.errors.clear()

    @contextmanager
    def _limited(self, seconds: float | None) -> Iterator[None]:
        limit = inf if seconds is None else self._loop.clock + seconds
        self._limits.append(limit)
        try:
            yield
        finally:
            self._limits.remove(limit)

    def _pass(self, until: float, done: Callable[[], bool]) -> None:
        """Let time pass until something is done, or until that time."""
        if self._process is None and self._working is None and not self.worker.deaths:
            self._start_worker()
        if self._process is not None:
            self._process.frozen_until = self._loop.clock
        while True:
            if self._turn(done, self._loop.clock + MOMENT) or self._loop.clock >= until:
                return
            at = min(self._next_event(), *self._limits, until)
            if at > self._loop.clock:
                self._loop.clock = at
            elif self._turn(done, min(until, self._loop.clock + STRIDE)):
                return

    def _turn(self, done: Callable[[], bool], until: float) -> bool:
        self._loop.steps = 0
        try:
            return self._loop.run_until(done, until)
        finally:
            if self._working is not None and self._working.done():
                self._working.result()  # it could not be started

    def _next_event(self) -> float:
        """When something will happen, by the clock of the loop; now, if something may at any
        time."""
        computer, clock = self._computer, self._loop.clock
        if self._process is None:
            return clock
        now = computer.server_time()
        look = computer.connection.execute
        if look(BUSY, (now,)).fetchone():
            return clock
        times = [at for at in look(DUE).fetchone() if at is not None]
        schedules = [one.periodic for one in self.app.handlers.values()]
        times += [one.schedule.after(now) for one in schedules if one is not None]
        at = min(times, default=inf)
        return max(clock, clock + at - now)


def _limit(method: Callable[..., Any], app: Penstock, args: Any, kwargs: Any) -> float | None:
    """After how many seconds a call that waits gives up."""
    given = inspect.signature(method).bind(app, *args, **kwargs).arguments
    limit: float | None = given.get("timeout", given.get("wait"))
    return limit


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


class VirtualSync:
    """The app of a test on the virtual clock, for code that does not await; see `SyncPenstock`."""

    def __init__(self, clock: VirtualClock, methods: dict[str, Callable[..., Any]]) -> None:
        self._clock = clock
        self._methods = methods
        self.app = clock.app

    def __getattr__(self, name: str) -> Any:
        try:
            method = self._methods[name]
        except KeyError:
            raise AttributeError(f"SyncPenstock has no attribute {name!r}") from None

        def call(*args: Any, **kwargs: Any) -> Any:
            if inspect.iscoroutinefunction(method):
                return self.run(self._clock.call(method, *args, **kwargs))
            if inspect.isasyncgenfunction(method):
                return self._iterate(method(self.app, *args, **kwargs))
            return nullcontext()  # `running`: the worker of the test is there

        return call

    @property
    def schedules(self) -> SyncSchedules:
        """See `SyncPenstock.schedules`."""
        return SyncSchedules(cast(Any, self))

    def run(self, awaitable: Any) -> Any:
        """See `SyncPenstock.run`."""
        return self._clock.run(_awaited(awaitable))

    def close(self) -> None:
        """The app of a test is closed by its end."""

    def __enter__(self) -> VirtualSync:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def _iterate(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._clock.run(_next(items))
            except StopAsyncIteration:
                return


async def _awaited(awaitable: Any) -> Any:
    return await awaitable
