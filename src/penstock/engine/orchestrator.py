"""A worker process's engine: dispatcher, internal queue, workers, settler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import replace
from itertools import count
from typing import Any

from penstock.aio import end_tasks
from penstock.engine.context import Services
from penstock.engine.dispatcher import Dispatcher
from penstock.engine.enqueuer import Enqueuer
from penstock.engine.handlers import Handler, Handlers
from penstock.engine.internal_queue import InternalQueue
from penstock.engine.job_lanes import Lending
from penstock.engine.lifespan import Lifespan
from penstock.engine.loop_lag import LoopLag
from penstock.engine.loop_monitor import LoopWatch
from penstock.engine.parking import Parking
from penstock.engine.permits import PermitBroker
from penstock.engine.prober import Prober
from penstock.engine.renewer import Renewer
from penstock.engine.request_scope import RequestScope
from penstock.engine.retry import reconnect_delay
from penstock.engine.run import CANCEL_SECONDS, Interrupt, Run
from penstock.engine.settler import Settler
from penstock.engine.ticker import Ticker, tickers
from penstock.engine.waiters import JobWaiters
from penstock.engine.watchdog import Watchdog
from penstock.engine.worker import Worker
from penstock.engine.worker_state import WorkerState
from penstock.errors import ConfigError, PenstockError, QueueError, StoreUnavailable
from penstock.model.settings import EngineConfig
from penstock.model.tally import Tally
from penstock.outbound.http import HttpClient
from penstock.outbound.web_address import parse_allow
from penstock.ports.queue import JobQueue, Lease, Member, Ref, Topic
from penstock.telemetry import tracing

log = logging.getLogger("penstock")

FLUSH_SECONDS = 5.0
"""How long a stop tries to store the last outcomes."""
HEARD_SECONDS = 0.01
"""Between two looks for permits because something happened somewhere."""
CHORE_UPKEEPS = 4
"""Chores are done once in this many times of upkeep: nobody's job waits for them."""

Chore = Callable[[], Awaitable[None]]
"""Something to be done now and then where workers run."""


class JobOrchestrator:
    """Runs jobs of the kinds in `handlers` until stopped. With `works=False` it runs none: it makes
    the process a member of the queue, for services that need no more than `asking`.

    After `stop()`: `running` is False, the dispatcher is done, `workers` is empty; what was
    claimed but not started is back in the queue with its attempt, running jobs have finished
    or (past the grace) are back in the queue with their attempt.
    """

    # Made by start().
    _bench: WorkerState
    _dispatcher: Dispatcher
    _renewer: Renewer
    _loop_watch: LoopWatch
    _waiters: JobWaiters
    _clean: Context

    def __init__(
        self,
        queue: JobQueue,
        handlers: Mapping[str, Handler | Callable[..., Any]],
        max_workers: int | None = None,
        *,
        settings: EngineConfig | None = None,
        enqueuer: Enqueuer | None = None,
        chores: Sequence[Chore] = (),
        works: bool = True,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
    ) -> None:
        """`lifespan` is entered before the first job and left after the last; what it yields is
        their `ctx.state`."""
        settings = settings or getattr(handlers, "settings", None) or EngineConfig()
        if max_workers is not None:
            settings = replace(settings, max_workers=max_workers)
        self._settings = settings
        self.max_workers = settings.max_workers if works else 0
        if works and not handlers:
            raise ConfigError("no handlers: register one with @app.job(...) first")
        self._queue = queue
        self._handlers = handlers if isinstance(handlers, Handlers) else Handlers(handlers)
        self._enqueuer = enqueuer or Enqueuer(queue, self._handlers)
        self._lifespan = None if lifespan is None or not works else Lifespan(lifespan)
        self._chores = tuple(chores)
        self._services: list[asyncio.Task[None]] = []
        self._tickers: list[Ticker] = []
        self._ticking: list[asyncio.Task[None]] = []
        self._rejoining: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()
        self._hasten = asyncio.Event()
        self.running = False
        self.dispatcher_task: asyncio.Task[None] | None = None
        """Made by `start`."""
        self.internal_queue = InternalQueue(maxsize=settings.internal_queue)
        self.workers: list[Worker] = []
        """`max_workers`, and for each job that waits for others its own."""
        self._numbers = count()
        self._lag = LoopLag()
        self._prober = Prober()
        self._visits = 0

    @property
    def degraded(self) -> str | None:
        """Why the queue cannot be reached, or None while all is well."""
        return self._dispatcher.degraded if self.running else None

    @property
    def status(self) -> dict[str, Any]:
        """busy and stuck workers, jobs parked (without a worker, for others or for permits) and
        claimed ahead, whether it drains or is degraded; how late its event loop is, and which job
        blocks it; trips to the queue, the tally of its runs, periodic kinds and their ticks."""
        return {
            "busy": self._bench.busy if self.running else 0,
            "stuck": len(self._bench.stuck) if self.running else 0,
            "parked": len(self._bench.parked) if self.running else 0,
            "waiting": self.internal_queue.qsize(),
            "draining": self.running and self._bench.draining,
            "degraded": self.degraded is not None,
            "loop_lag": self._lag.longest,
            "blocked": self._loop_watch.status if self.running else None,
            "trips": self._dispatcher.trips if self.running else 0,
            "trip_seconds": round(self._dispatcher.trip_seconds, 3) if self.running else 0.0,
            "tally": self._bench.tally.as_status() if self.running else {},
            "periodic": [ticker.status for ticker in self._tickers],
        }

    async def start(self) -> None:
        if self.running:
            raise PenstockError("this orchestrator is already running")
        await asyncio.to_thread(self._prepare)
        self._tickers = tickers(self._queue, self._handlers, self._enqueuer, self._settings)
        # Before joining: it may take longer than a lease.
        state = None if self._lifespan is None else await self._lifespan.start()
        try:
            member = await self._join()
        except BaseException:
            await self._end_lifespan()
            raise
        self.internal_queue = InternalQueue(maxsize=self._settings.internal_queue)
        runs: dict[Ref, Run] = {}
        watchdog = Watchdog(runs.values, self._queue.now)
        self._loop_watch = LoopWatch(
            self._lag, runs.values, self._queue.now, lambda: self._renewer.soon()
        )
        settler = Settler(self._settings, self._wake)
        self._bench = bench = WorkerState(
            settings=self._settings,
            handlers=self._handlers,
            internal_queue=self.internal_queue,
            settler=settler,
            watchdog=watchdog,
            member=member,
            services=Services(
                note=settler.note,
                enqueuer=self._enqueuer,
                permits=PermitBroker(
                    lambda: bench.member,
                    settler.give_back,
                    settler.told,
                    self._queue.lane_config,
                    self._settings.poll_seconds,
                ),
                client=HttpClient(
                    parse_allow(self._settings.outbound.fetch_allow),
                    self._settings.outbound.contact,
                    self._settings.outbound.trace_hosts,
                ),
                timed=lambda kind, stage, took: bench.tally.of(kind).stage(stage).note(took),
                finished=lambda run, jobs: parking.finished(run, jobs),
                parked=lambda run, timed: parking.parked(run, timed),
                lending=Lending(
                    lambda run: parking.lend(run),
                    lambda run: parking.go_on(run),
                    lambda run: parking.reclaim(run),
                ),
                loop=asyncio.get_running_loop(),
                state=state,
            ),
            runs=runs,
            traced=tracing.on(),
            freed=self._on_freed,
            blocked_since=self._loop_watch.blocked_since,
            ready=self._on_ready,
        )
        self._dispatcher = dispatcher = Dispatcher(bench, self._on_lapsed, self._queue.get)
        self._stopping = None
        self._clean = copy_context()
        self._waiters = JobWaiters(self._queue)
        parking = Parking(bench, self._waiters, self._add_worker)
        for _ in range(self.max_workers):
            self._add_worker()
        if not self.workers:
            dispatcher.stop_claiming()
        self.dispatcher_task = asyncio.create_task(dispatcher.run(), name="penstock-dispatcher")
        self._services = [
            asyncio.create_task(self._hear_ready(), name="penstock-ready"),
            asyncio.create_task(self._hear_cancelled(), name="penstock-cancelled"),
            asyncio.create_task(self._keep_up(), name="penstock-upkeep"),
            asyncio.create_task(self._probe(), name="penstock-probe"),
            asyncio.create_task(self._lag.watch(), name="penstock-lag"),
            *(
                asyncio.create_task(self._do(chore), name="penstock-chore")
                for chore in self._chores
            ),
        ]
        self._ticking = [
            asyncio.create_task(self._do(ticker), name="penstock-ticker")
            for ticker in self._tickers
        ]
        self._start_renewer(member)
        self._loop_watch.start()
        self.running = True

    def asking(self, tenant: str, deadline: float) -> RequestScope:
        """For a service of this process: requests with permits as those of jobs, until a time on
        the queue's clock. Whoever uses it ends before the orchestrator is stopped."""
        services = self._bench.services
        return RequestScope(services.permits, services.client, self._queue.now, tenant, deadline)

    @property
    def receives(self) -> bool:
        """Whether it is there for new visits: not while it starts or stops."""
        return self.running and not self._bench.draining

    @contextmanager
    def visiting(self, tenant: str, deadline: float) -> Iterator[RequestScope]:
        """Ask a question: as `asking`, but jobs leave it a slot. A stop waits for it as for a
        running job."""
        services = self._bench.services
        now = self._queue.now
        self._visits += 1
        try:
            yield RequestScope(
                services.permits, services.client, now, tenant, deadline, question=True
            )
        finally:
            self._visits -= 1
            self._freed.set()

    def _add_worker(self) -> None:
        name = f"penstock-worker-{next(self._numbers)}"
        self.workers.append(Worker(self._bench, name, self._clean, self._on_retired))

    def _on_retired(self, worker: Worker) -> None:
        if worker in self.workers:  # not when a stop has cleared them
            self.workers.remove(worker)

    def _prepare(self) -> None:
        for handler in self._handlers.values():
            handler.arguments.prepare()

    async def stop(self, grace: float | None = None) -> None:
        """Claim nothing more, let running jobs finish for `grace` seconds, hand back the rest.

        Calling it again waits for the stop under way; with a shorter grace, hastens it.
        """
        if not self.running:
            return
        grace = self._settings.grace_seconds if grace is None else grace
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace), name="penstock-stop")
        elif grace <= 0:
            self._hasten.set()
            self._freed.set()
        await asyncio.shield(self._stopping)

    async def _stop(self, grace: float) -> None:
        bench, dispatcher = self._bench, self._dispatcher
        bench.draining = True
        await end_tasks(self._ticking)  # who takes no more jobs makes none
        if self._rejoining is not None:
            self._rejoining.cancel()
        dispatcher.stop_claiming()
        for lease in dispatcher.take_waiting():
            bench.hand_back(lease)
        for run in [bench.runs[ref] for ref in bench.parked]:
            if run.for_others:  # they may never run here
                run.interrupt(Interrupt.STOPPING)
        await self._until_no_runs(grace)
        self._hasten.clear()
        if bench.runs:
            # Asked to stop at once, that is what was asked for.
            level = logging.WARNING if grace > 0 else logging.INFO
            message = "%d jobs still run after %g s: handing them back"
            log.log(level, message, len(bench.runs), grace)
            self._interrupt_all(Interrupt.STOPPING)
            # Handlers that ignore it are given up, and their jobs handed back, after that time.
            await self._until_no_runs(CANCEL_SECONDS * 2)
        bench.closed = True
        tasks = [worker.task for worker in self.workers]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
        self.workers.clear()
        dispatcher.finish()
        assert self.dispatcher_task is not None
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.gather(self.dispatcher_task)
        except (QueueError, TimeoutError) as error:
            log.error("the last outcomes could not be stored; their jobs run again: %s", error)
            await end_tasks([self.dispatcher_task])
        await asyncio.to_thread(self._loop_watch.stop)
        await end_tasks(self._services)
        await self._waiters.close()
        bench.watchdog.stop()
        await bench.services.client.close()
        # Renewals end last: until here, every job still held is really held.
        await asyncio.to_thread(self._renewer.stop)
        try:
            await bench.member.leave()
        except QueueError as error:
            log.error("could not sign off; others will notice: %s", error)
        await self._end_lifespan()
        self.running = False

    async def _end_lifespan(self) -> None:
        if self._lifespan is not None:
            await self._lifespan.stop()

    async def _until_no_runs(self, seconds: float) -> None:
        """Wait until nothing runs, the time is up, or a second stop is in a hurry."""
        try:
            async with asyncio.timeout(seconds):
                while (self._bench.runs or self._visits) and not self._hasten.is_set():
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            return

    def _interrupt_all(self, reason: Interrupt) -> None:
        for run in list(self._bench.runs.values()):
            run.interrupt(reason)

    def _wake(self) -> None:
        self._dispatcher.wake()

    def _on_ready(self) -> None:
        self._dispatcher.ready()

    def _on_handed(self, leases: list[Lease]) -> None:
        self._dispatcher.take(leases)

    def _on_freed(self) -> None:
        self._freed.set()
        self._wake()

    async def _join(self) -> Member:
        return await self._queue.join(
            sorted(self._handlers), self.max_workers, self._settings.lease_seconds, self._on_handed
        )

    def _start_renewer(self, member: Member) -> None:
        loop = asyncio.get_running_loop()
        bench = self._bench

        def holds() -> list[Lease]:
            return list(bench.holds.values())

        def look() -> None:
            if bench.member is member:  # and has not joined again since
                self._on_lapsed()

        def lapsed() -> None:
            loop.call_soon_threadsafe(look)

        self._renewer = Renewer(
            member,
            self._settings.lease_seconds / 3,
            lambda: self.status,
            holds,
            lapsed,
        )
        self._renewer.start()

    def _on_lapsed(self) -> None:
        """Others have taken over what this process held (it was frozen, or cut off too long)."""
        if self._rejoining is None and not self._bench.draining:
            log.error("the membership lapsed: every lease is lost; joining again")
            self._rejoining = asyncio.create_task(self._rejoin(), name="penstock-rejoin")

    async def _rejoin(self) -> None:
        bench, dispatcher = self._bench, self._dispatcher
        self._interrupt_all(Interrupt.LEASE_LOST)
        dispatcher.take_waiting()
        bench.held.clear()
        bench.crashed.clear()
        bench.in_lanes.clear()
        bench.settler.forget()
        await asyncio.to_thread(self._renewer.stop)
        failures = 0
        while True:
            try:
                await bench.member.leave()
                bench.member = await self._join()
                bench.tally = Tally()  # another membership: its counters start again
                break
            except QueueError as error:
                failures += 1
                log.warning("cannot join again yet: %s", error)
                await asyncio.sleep(reconnect_delay(failures, self._settings))
        self._start_renewer(bench.member)
        self._rejoining = None
        dispatcher.ready()

    async def _hear_ready(self) -> None:
        listener = self._queue.listen(Topic.READY)
        try:
            while True:
                await listener.wait(None)
                self._dispatcher.ready()
                self._bench.services.permits.changed(pause=HEARD_SECONDS)
        finally:
            listener.close()

    async def _hear_cancelled(self) -> None:
        bench = self._bench
        listener = self._queue.listen(Topic.CANCELLED)
        try:
            while True:
                # The time-out covers a wake-up that never came, while anything runs.
                await listener.wait(self._settings.poll_seconds if bench.runs else None)
                await self._interrupt_cancelled(bench)
        finally:
            listener.close()

    async def _interrupt_cancelled(self, bench: WorkerState) -> None:
        try:
            seqs = await bench.member.cancelled()
        except QueueError as error:
            log.debug("cannot look for cancelled jobs: %s", error)
            return
        for seq in seqs:
            running = [run for run in bench.runs.values() if run.lease.seq == seq]
            for run in running:
                run.interrupt(Interrupt.CANCELLED)
            if not running:
                bench.dropped.add(seq)
        bench.dropped.intersection_update(seqs)

    async def _probe(self) -> None:
        # Apart from the upkeep: a probe may hang for its whole time-out.
        while True:
            try:
                await self._prober.probe_troubled(self._bench.member)
            except* QueueError as errors:
                log.debug("probing has to wait: %s", errors.exceptions)
            await asyncio.sleep(self._settings.upkeep_seconds)

    async def _do(self, chore: Chore) -> None:
        while True:
            try:
                await chore()
            except (QueueError, StoreUnavailable) as error:
                log.debug("a chore has to wait: %s", error)
            except Exception:
                log.exception("a chore failed in a way it should not")
            await asyncio.sleep(CHORE_UPKEEPS * self._settings.upkeep_seconds)

    async def _keep_up(self) -> None:
        while True:
            try:
                await self._bench.member.upkeep()
            except QueueError as error:
                log.debug("upkeep has to wait: %s", error)
            except Exception:
                log.exception("upkeep failed in a way it should not")
            await asyncio.sleep(self._settings.upkeep_seconds)
