"""A worker process's engine: dispatcher, internal queue, workers, settler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock import runtime
from penstock.engine.assembly import Chore, Engine, assemble
from penstock.engine.claims import InternalQueue
from penstock.engine.enqueuer import Enqueuer
from penstock.engine.handlers import Handler, Handlers
from penstock.engine.lifespan import Lifespan
from penstock.engine.run import Interrupt
from penstock.engine.status import NOT_RUNNING
from penstock.engine.watchdog import CANCEL_SECONDS
from penstock.engine.worker import Worker
from penstock.errors import ConfigError, PenstockError, QueueError
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue

if TYPE_CHECKING:
    from penstock.engine.request_scope import RequestScope
    from penstock.engine.step_results import StepResults

log = logging.getLogger("penstock")

FLUSH_SECONDS = 5.0
"""How long a stop tries to store the last outcomes."""


class JobOrchestrator:
    """Runs jobs of the kinds in `handlers` until stopped. With `works=False` it runs none: it makes
    the process a member of the queue, for services that need no more than `asking`.

    After `stop()`: `running` is False, the dispatcher is done, `workers` is empty; what was
    claimed but not started is back in the queue with its attempt, running jobs have finished
    or (past the grace) are back in the queue with their attempt.
    """

    _engine: Engine
    """Made by `start`."""

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
        step_results: Callable[[], StepResults | None] = lambda: None,
    ) -> None:
        """`lifespan` is entered before the first job and left after the last; what it yields is
        their `ctx.state`. `step_results` says where results of steps are kept that are too large
        for the queue."""
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
        self._lifespan = Lifespan(lifespan if works and lifespan is not None else nullcontext)
        self._chores = tuple(chores)
        self._step_results = step_results
        self._stopping: asyncio.Task[None] | None = None
        self.running = False
        self.dispatcher_task: asyncio.Task[None] | None = None
        """Made by `start`."""
        self.internal_queue = InternalQueue(maxsize=settings.internal_queue)
        self.workers: list[Worker] = []
        """`max_workers`, and for each job that waits for others its own."""

    @property
    def degraded(self) -> str | None:
        """Why the queue is unreachable, or None."""
        return self._engine.health.degraded if self.running else None

    @property
    def status(self) -> dict[str, Any]:
        """See `EngineStatus.as_dict`."""
        return self._engine.status.as_dict() if self.running else dict(NOT_RUNNING)

    async def start(self) -> None:
        if self.running:
            raise PenstockError("this orchestrator is already running")
        await runtime.in_thread(self._handlers.prepare)
        # Before joining: it may take longer than a lease.
        state = await self._lifespan.start()
        try:
            self._engine = engine = assemble(
                self._queue,
                self._handlers,
                self._settings,
                self._enqueuer,
                self._chores,
                self.max_workers,
                state,
                self._step_results,
            )
            await engine.membership.join()
        except BaseException:
            await self._lifespan.stop()
            raise
        self._stopping = None
        self.internal_queue, self.workers = engine.claims.internal_queue, engine.workers.all
        if not self.max_workers:
            engine.claims.close()
        engine.workers.start()
        engine.dispatcher.start()
        self.dispatcher_task = engine.dispatcher.task
        for service in (*engine.background, *engine.ticking):
            service.start()
        engine.membership.start()
        engine.loop_watch.start()
        self.running = True

    def asking(self, tenant: str, deadline: float, *, question: bool = False) -> RequestScope:
        """For a service of this process: requests with permits as those of jobs, until a time on
        the queue's clock. Whoever uses it ends before the orchestrator is stopped. Jobs leave a
        `question` a slot."""
        return self._engine.services.requests.scope(tenant, deadline, question)

    @property
    def receives(self) -> bool:
        """Whether it is there for new visits: not while it starts or stops."""
        return self.running and not self._engine.running.draining

    @contextmanager
    def request_scope(self, tenant: str, deadline: float) -> Iterator[RequestScope]:
        """Ask a question. A stop waits for it as for a running job."""
        running = self._engine.running
        running.visits += 1
        try:
            yield self.asking(tenant, deadline, question=True)
        finally:
            running.visits -= 1
            running.freed()

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, let running jobs finish for `grace` seconds, and return the rest to the
        queue. Calling it again waits for the stop in progress; a shorter grace hastens it."""
        if not self.running:
            return
        grace = self._settings.grace_seconds if grace is None else grace
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace), name="penstock-stop")
        elif grace <= 0:
            self._engine.running.hurry = True
            self._engine.running.freed()
        await asyncio.shield(self._stopping)

    async def _stop(self, grace: float) -> None:
        engine, claims, running = self._engine, self._engine.claims, self._engine.running
        running.draining = True
        for ticker in engine.ticking:  # who takes no more jobs makes none
            await ticker.stop()
        await engine.membership.stop_rejoining()
        claims.close()
        for lease in claims.take_waiting():
            claims.hand_back(lease)
        for run in [running.runs[ref] for ref in running.parked]:
            if run.for_others:  # they may never run here
                engine.watchdog.interrupt(run, Interrupt.STOPPING)
        await running.until_idle(grace)
        running.hurry = False
        if running.runs:
            # Asked to stop at once, that is what was asked for.
            level = logging.WARNING if grace > 0 else logging.INFO
            message = (
                "%d jobs still running after the grace period of %g s; returning them to the queue"
            )
            log.log(level, message, len(running.runs), grace)
            engine.watchdog.interrupt_all(Interrupt.STOPPING)
            # Handlers that ignore it are given up, and their jobs handed back, after that time.
            await running.until_idle(CANCEL_SECONDS * 2)
        await engine.workers.stop()
        try:
            await engine.dispatcher.finish(FLUSH_SECONDS)
        except (QueueError, TimeoutError) as error:
            log.error("could not store the last outcomes; their jobs will run again: %s", error)
        await engine.loop_watch.stop()
        for service in engine.background:
            await service.stop()
        await engine.waiters.close()
        engine.watchdog.stop()
        await engine.services.recording.close()
        await engine.services.requests.close()
        # Leave last: until here, every job still held is really held.
        await engine.membership.stop()
        await self._lifespan.stop()
        self.running = False
