"""Workers: each runs one job at a time."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from penstock import runtime
from penstock.engine.background import Service
from penstock.engine.claims import Claims
from penstock.engine.context import JobContext, Services
from penstock.engine.events import EngineEvents
from penstock.engine.handlers import Handlers
from penstock.engine.loop_monitor import LoopWatch
from penstock.engine.membership import Membership
from penstock.engine.outcomes import Endings, suspended
from penstock.engine.run import Interrupt, Run, current
from penstock.engine.running import Running
from penstock.engine.spans import processing
from penstock.engine.thread_call import ThreadCall
from penstock.engine.watchdog import CANCEL_SECONDS, Watchdog, overdue
from penstock.errors import Suspended, SuspensionSwallowed
from penstock.model.payload import encode_result
from penstock.ports.lanes import News, Report
from penstock.ports.queue import Lease, Outcome, Settlement
from penstock.telemetry import tracing


@dataclass(slots=True, frozen=True)
class WorkerParts:
    """The parts of the engine that each worker uses."""

    handlers: Handlers
    claims: Claims
    running: Running
    membership: Membership
    endings: Endings
    watchdog: Watchdog
    loop_watch: LoopWatch
    services: Services


class Workers(Service):
    """The workers of a process: `most`, and for each parked run its own."""

    name = "workers"

    def __init__(self, most: int, events: EngineEvents, parts: WorkerParts) -> None:
        self._most = most
        self._events = events
        self._parts = parts
        self._numbers = count()
        self.all: list[Worker] = []

    def start(self) -> None:
        self._clean = copy_context()
        self._traced = tracing.on()
        for _ in range(self._most):
            self._add()
        super().start()

    async def run(self) -> None:
        """Fill the places of workers that parked runs have kept."""
        running = self._parts.running
        while True:
            await self._events.vacant.wait()
            self._events.vacant.clear()
            while running.vacant:
                running.vacant -= 1
                self._add()

    def _add(self) -> None:
        name = f"penstock-worker-{next(self._numbers)}"
        self.all.append(Worker(self.all, self._parts, name, self._clean, self._traced))

    async def stop(self) -> None:
        """End all of them, whatever they do."""
        await super().stop()
        workers, self.all[:] = self.all[:], []
        tasks = [worker.end() for worker in workers]
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)


class Worker:
    """A coroutine that takes jobs from the internal queue, and from nowhere else. It strikes itself
    off the list `all_` when it ends because there is one too many."""

    def __init__(
        self, all_: list[Worker], parts: WorkerParts, name: str, clean: Context, traced: bool
    ) -> None:
        """Jobs run in copies of the context `clean`; with spans if they are `traced`."""
        self._all = all_
        self._parts = parts
        self._name = name
        self._clean = clean
        self._traced = traced
        self._closed = False
        self._start()

    def _start(self) -> None:
        context: Context = self._clean.copy()
        self.task = asyncio.create_task(self._loop(), name=self._name, context=context)

    def end(self) -> asyncio.Task[None]:
        """Cancel it. It takes no other job, whatever its handler makes of being cancelled."""
        self._closed = True
        self.task.cancel()
        return self.task

    def _retire(self) -> None:
        if self in self._all:  # not when a stop has cleared them
            self._all.remove(self)

    async def _loop(self) -> None:
        claims, running = self._parts.claims, self._parts.running
        waiting, membership = claims.internal_queue, self._parts.membership
        while not self._closed:
            lease = waiting.get_nowait() if not waiting.empty() else await waiting.get()
            if not isinstance(lease, Lease):
                # A job is back from waiting for others: it goes on in this worker's place.
                running.busy += 1
                lease.set_result(None)
                self._retire()
                return
            if lease.seq in claims.dropped:
                claims.dropped.discard(lease.seq)
                claims.hand_back(lease, Outcome.CANCEL_SEEN)
                continue
            if lease.lane and not claims.slack.in_time(
                lease.start_at, lease.void_at, membership.member.now()
            ):
                claims.hand_back(lease)
                continue
            if lease.refused is not None:
                claims.refuse(lease, membership.member.now())
                continue
            run = self._run(lease)
            running.busy += 1
            try:
                if self._traced:
                    with processing(run):
                        await self._do(run)
                else:
                    await self._do(run)
            finally:
                running.busy -= run.placed
                claims.ended(lease)
                running.freed()
            if not run.placed:  # it ended while it waited: another worker has its place
                self._retire()
                return
            if not self._is_clean():
                # The handler left context variables behind. The next job must not see them,
                # and they cannot be unset: go on in a fresh task.
                if not self._closed:
                    self._start()
                return
            # A handler need not suspend; the event loop must get its turn all the same.
            await asyncio.sleep(0)

    def _is_clean(self) -> bool:
        try:
            return copy_context() == self._clean
        except Exception:  # a value that refuses to be compared was left behind
            return False

    def _run(self, lease: Lease) -> Run:
        member = self._parts.membership.member
        limit = lease.timeout or self._parts.handlers[lease.kind].timeout
        return Run(lease, member, self.task, member.now(), limit)

    async def _do(self, run: Run) -> None:
        parts, lease, task = self._parts, run.lease, self.task
        handler, endings = parts.handlers[lease.kind], parts.endings
        context = JobContext(run, parts.services)
        parts.running.begin(run)
        parts.watchdog.watch(run)
        token = current.set(run)
        thread: ThreadCall | None = None
        settlement: Settlement | None = None
        try:
            arguments = handler.arguments.parse(lease.payload)
            try:
                if handler.is_async:
                    result = await handler.function(context, **arguments)
                else:
                    function = partial(handler.function, context, **arguments)
                    thread = ThreadCall(handler.kind, function)
                    result, error = await thread.result
                    if error is not None:
                        raise error
                if run.suspended is not None:
                    raise SuspensionSwallowed
                settlement = _completed(run, result)
            except Exception as error:
                await context.attempt_failed(error)
                raise
            since = parts.loop_watch.blocked_since(run)
            if since is not None and since < run.deadline <= run.member.now():
                # The watchdog was blocked like everybody else. Only the run's own doing counts:
                # who merely comes after it is late through no fault of theirs.
                run.interrupted = overdue(run, run.member.now())
        except asyncio.CancelledError as error:
            if run.interrupted is None:
                if task.cancelling():  # the worker itself is being ended
                    run.interrupted = Interrupt.STOPPING
                    endings.interrupted(run, stuck=thread is not None and thread.running)
                    raise
                settlement = endings.failed(run, error)
        except GeneratorExit as error:
            if not task.get_loop().is_running():  # the program is being torn down
                raise
            settlement = endings.failed(run, error)
        except BaseException as error:
            if run.suspended is not None and _unwound(error):
                settlement = suspended(run, run.suspended)
            else:
                settlement = endings.failed(run, error)
        finally:
            current.reset(token)
            parts.running.end(run)
        if run.interrupted is None:
            endings.settle(run, settlement)
        else:
            await self._end_interrupted(run, thread)
        if run.placed:
            parts.running.took(runtime.monotonic() - run.worker_since)

    async def _end_interrupted(self, run: Run, thread: ThreadCall | None) -> None:
        while run.task.cancelling():
            run.task.uncancel()
        try:
            if not run.given_up:
                stuck = thread is not None and thread.running
                self._parts.endings.interrupted(run, stuck=stuck)
            if thread is not None:
                # The worker stays occupied until the thread returns.
                await thread.returned.wait()
        finally:
            self._parts.running.unstick(run)


def _unwound(error: BaseException) -> bool:
    """Whether it is nothing but the suspension of the job; a task group has made a group of it."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(Suspended)[1] is None
    return isinstance(error, Suspended)


def _completed(run: Run, result: Any) -> Settlement:
    settlement = Settlement(
        run.lease, Outcome.COMPLETED, run.started_at, run.member.now(), encode_result(result)
    )
    if run.lease.lane:
        return settlement._replace(report=Report(News.SUCCESS))
    return settlement
