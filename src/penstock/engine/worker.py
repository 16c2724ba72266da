"""Workers: each runs one job at a time."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.context import JobContext, Services, current
from penstock.engine.handlers import Handler, Handlers
from penstock.engine.internal_queue import InternalQueue
from penstock.engine.reports import report_of
from penstock.engine.retry import retry_delay
from penstock.engine.run import Interrupt, Run
from penstock.engine.settler import Settler
from penstock.engine.watchdog import Watchdog
from penstock.model.errors import (
    AuthenticationError,
    DeadlineExceeded,
    JobTimeout,
    LaneBusy,
    ReleasedTooOften,
    RunLater,
    describe,
    is_permanent,
)
from penstock.model.job import RELEASE_LIMIT
from penstock.model.payload import encode_result
from penstock.model.settings import Settings
from penstock.ports.queue import Lease, Member, News, Outcome, Report, Settlement

log = logging.getLogger("penstock")

STUCK_RELEASE_SECONDS = 2.0
"""A job whose thread outlives a stop is not offered to others before the process is gone."""


@dataclass(slots=True)
class Bench:
    """What the workers of a process share."""

    settings: Settings
    handlers: Handlers
    internal_queue: InternalQueue
    settler: Settler
    watchdog: Watchdog
    member: Member
    services: Services
    runs: dict[int, Run] = field(default_factory=dict)
    """Running jobs by seq."""
    stuck: dict[int, Run] = field(default_factory=dict)
    """Settled runs whose thread has not returned; each still occupies its worker."""
    holds: dict[int, Lease] = field(default_factory=dict)
    """Stuck jobs that wait for a retry, which must not start before the thread returns."""
    crashed: set[int] = field(default_factory=set)
    """Jobs here with a crash on their record; at most one."""
    dropped: set[int] = field(default_factory=set)
    """Jobs claimed ahead that have been cancelled since."""
    in_lanes: set[int] = field(default_factory=set)
    """Jobs here that hold a permit: about to start, or running."""
    busy: int = 0
    average_seconds: float = 1.0
    """Of recent runs, newer ones weighing more; what prefetching goes by."""
    freed: Callable[[], None] = lambda: None


class Worker:
    """A coroutine that takes jobs from the internal queue, and from nowhere else."""

    def __init__(self, bench: Bench, name: str) -> None:
        self._bench = bench
        self._name = name
        self._clean = copy_context()
        self._start()

    def _start(self) -> None:
        context: Context = self._clean.copy()
        self.task = asyncio.create_task(self._loop(), name=self._name, context=context)

    async def _loop(self) -> None:
        bench, waiting = self._bench, self._bench.internal_queue
        while True:
            lease = waiting.get_nowait() if not waiting.empty() else await waiting.get()
            if lease.seq in bench.dropped:
                bench.dropped.discard(lease.seq)
                self._put_down(lease, Outcome.CANCEL_SEEN)
                continue
            if lease.lane and time.time() > lease.void_at:
                self._put_down(lease, Outcome.HANDED_BACK)
                continue
            bench.busy += 1
            try:
                await self._do(lease)
            finally:
                bench.busy -= 1
                bench.crashed.discard(lease.seq)
                bench.in_lanes.discard(lease.seq)
                bench.freed()
            if copy_context() != self._clean:
                # The handler left context variables behind. The next job must not see them,
                # and they cannot be unset: go on in a fresh task.
                self._start()
                return
            # A handler need not suspend; the event loop must get its turn all the same.
            await asyncio.sleep(0)

    def _put_down(self, lease: Lease, outcome: Outcome) -> None:
        """End a lease without having run the job."""
        self._bench.crashed.discard(lease.seq)
        self._bench.in_lanes.discard(lease.seq)
        self._bench.settler.add(Settlement(lease, outcome), None)

    async def _do(self, lease: Lease) -> None:
        bench = self._bench
        handler = bench.handlers[lease.kind]
        now = time.time()
        deadline = now + (lease.timeout or handler.timeout)
        if lease.deadline is not None and lease.deadline < deadline:
            deadline = lease.deadline
        task = self.task
        run = Run(lease, bench.member, task, now, deadline)
        context = JobContext(run, bench.services)
        bench.runs[lease.seq] = run
        bench.watchdog.watch(run)
        token = current.set(context)
        thread: ThreadCall | None = None
        settlement: Settlement | None = None
        try:
            arguments = handler.arguments.parse(lease.payload)
            if handler.is_async:
                result = await handler.function(context, **arguments)
            else:
                thread = ThreadCall(handler, context, arguments)
                result = await thread.result
            text = encode_result(result)
            settlement = Settlement(lease, Outcome.COMPLETED, now, time.time(), text)
            if lease.lane:
                settlement = settlement._replace(report=Report(News.SUCCESS))
        except asyncio.CancelledError as error:
            if run.interrupted is None:
                if task.cancelling():  # the worker itself is being ended
                    run.interrupted = Interrupt.STOPPING
                    self._settle(run, _interrupted(run, handler, bench.settings, thread))
                    raise
                settlement = _failed(run, error, handler, bench.settings)
        except (Exception, SystemExit) as error:
            settlement = _failed(run, error, handler, bench.settings)
        finally:
            current.reset(token)
            del bench.runs[lease.seq]
        if run.interrupted is not None:
            while task.cancelling():
                task.uncancel()
            ended = _interrupted(run, handler, bench.settings, thread)
            self._settle(run, ended)
            if thread is not None and thread.running:
                await self._wait_stuck(run, ended, thread)
        else:
            self._settle(run, settlement)
        bench.average_seconds += (time.time() - now - bench.average_seconds) * 0.2

    def _settle(self, run: Run, settlement: Settlement | None) -> None:
        if settlement is not None:
            self._bench.settler.add(settlement, run)

    async def _wait_stuck(self, run: Run, ended: Settlement | None, thread: ThreadCall) -> None:
        """Stay occupied until the thread returns: threads cannot be ended from outside."""
        bench, lease = self._bench, run.lease
        log.warning("job %s (%s) is settled but its thread goes on", lease.id, lease.kind)
        run.stuck = True
        bench.stuck[lease.seq] = run
        if ended is not None and ended.outcome is Outcome.RETRY:
            bench.holds[lease.seq] = lease
        try:
            await thread.returned.wait()
        finally:
            del bench.stuck[lease.seq]
            bench.holds.pop(lease.seq, None)


class ThreadCall:
    """A sync handler running in a thread of its own.

    A daemon thread: one that never returns must not keep the process from ending.
    """

    def __init__(self, handler: Handler, context: JobContext, arguments: dict[str, Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()
        self.returned = asyncio.Event()
        call = copy_context()

        def target() -> None:
            value, error = None, None
            try:
                value = call.run(handler.function, context, **arguments)
            except BaseException as problem:
                error = problem
            try:
                self._loop.call_soon_threadsafe(self._finish, value, error)
            except RuntimeError:
                log.debug("a handler's thread returned after the event loop had closed")

        threading.Thread(target=target, name=f"penstock-{handler.kind}", daemon=True).start()

    @property
    def running(self) -> bool:
        return not self.returned.is_set()

    def _finish(self, value: Any, error: BaseException | None) -> None:
        self.returned.set()
        if self.result.done():
            return
        if error is None:
            self.result.set_result(value)
        elif isinstance(error, StopIteration):  # which a future refuses to carry
            self.result.set_exception(RuntimeError(f"handler raised {error!r}"))
        else:
            self.result.set_exception(error)


def _interrupted(
    run: Run, handler: Handler, settings: Settings, thread: ThreadCall | None
) -> Settlement | None:
    """How a run that was cut short ends; None when it no longer has a lease to end."""
    stuck = thread is not None and thread.running
    match run.interrupted:
        case Interrupt.TIMEOUT:
            limit = run.deadline - run.started_at
            error: Exception = JobTimeout(f"took longer than its timeout of {limit:g} s")
            return _failed(run, error, handler, settings, stuck=stuck)
        case Interrupt.DEADLINE:
            return _failed(run, DeadlineExceeded("its deadline passed"), handler, settings)
        case Interrupt.CANCELLED:
            return Settlement(run.lease, Outcome.CANCEL_SEEN)
        case Interrupt.STOPPING:
            later = time.time() + STUCK_RELEASE_SECONDS if stuck else 0.0
            return Settlement(run.lease, Outcome.HANDED_BACK, run_at=later)
        case _:
            return None


def _failed(
    run: Run, error: BaseException, handler: Handler, settings: Settings, *, stuck: bool = False
) -> Settlement:
    """What becomes of a job whose run ended with `error`."""
    lease, now = run.lease, time.time()
    if isinstance(error, RunLater):
        late = lease.deadline is not None and now + error.delay >= lease.deadline
        if not late and lease.releases < RELEASE_LIMIT:
            note = {"message": error.reason}
            return Settlement(lease, Outcome.RELEASED, error=note, run_at=now + error.delay)
        error = (
            DeadlineExceeded(f"asked to be run in {error.delay:g} s, past its deadline")
            if late
            else ReleasedTooOften(f"asked to be run later {RELEASE_LIMIT} times")
        )
    if isinstance(error, LaneBusy):
        note = {"message": str(error)}
        return Settlement(lease, Outcome.RELEASED, error=note, run_at=max(now, error.until))
    report = report_of(error)
    in_lane = report is not None and bool(lease.lane or report.lane)
    # Refused in a lane: three in a row are the credentials' fault, and then nothing dies of it.
    refused = in_lane and isinstance(error, AuthenticationError)
    permanent = is_permanent(error, handler.permanent) and not refused
    description = describe(error, retryable=not permanent)
    max_retries = handler.max_retries if lease.max_retries is None else lease.max_retries
    trace = _traceback(error)
    failed = Settlement(
        lease, Outcome.FAILED, run.started_at, now, error=description, traceback=trace
    )
    if in_lane:
        failed = failed._replace(report=report)
    if permanent or lease.attempts > max_retries:
        return failed
    run_at = now + retry_delay(lease.attempts, settings)
    if stuck:
        run_at = max(run_at, now + settings.lease_seconds)
    if lease.deadline is not None and run_at >= lease.deadline:
        description["message"] += " (no retry: its deadline comes first)"
        return failed
    return failed._replace(outcome=Outcome.RETRY, run_at=run_at)


def _traceback(error: BaseException) -> str | None:
    """The innermost frames of where it was raised; None for errors of the engine itself."""
    if error.__traceback__ is None:
        return None
    frames = traceback.format_tb(error.__traceback__, limit=-5)
    return "".join(frames)[-4000:]
