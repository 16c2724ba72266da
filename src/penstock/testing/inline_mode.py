"""Inline mode: `enqueue` runs the handler at once, in the task of its caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any

from penstock.app import Penstock
from penstock.engine.assembly import Engine
from penstock.engine.handlers import Handler, Handlers
from penstock.engine.room import Room
from penstock.engine.worker import Worker, WorkerParts
from penstock.errors import NOT_ATTEMPTS, JobFailed
from penstock.model.job import Job
from penstock.ports.queue import Lease, Want

MOST = 1000
"""Jobs of the kind that may be due before those that were enqueued now."""
MOMENT = 0.001
"""Between two looks whether the end of a job is stored."""

_raised: ContextVar[list[Exception] | None] = ContextVar("penstock_inline_raised", default=None)
"""What the handler that runs here has raised."""


class InlineWorker(Worker):
    """A worker that takes no jobs: it is given one, and runs it in the task that gives it."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        task = asyncio.current_task()
        assert task is not None
        self.task = task

    async def do(self, lease: Lease) -> None:
        """Run a job to its settlement."""
        running = self._parts.running
        run = self._run(lease)
        running.busy += 1
        try:
            await self._do(run)
        finally:
            running.busy -= run.placed
            self._parts.claims.ended(lease)
            running.freed()


@contextmanager
def running_inline(app: Penstock) -> Iterator[None]:
    """Have each job that this app enqueues, and that could start now, run where it is enqueued."""
    enqueuer = app._enqueuer
    store = enqueuer.enqueue_many

    async def enqueue_many(kind: str, payloads: Sequence[Any], **options: Any) -> list[Job]:
        jobs = await store(kind, payloads, **options)
        if kind in app.handlers:
            await _run(app, kind, [job.id for job in jobs])
        found = await app.queue.get([job.id for job in jobs])
        return [found.get(job.id, job) for job in jobs]  # one in an open transaction is not there

    vars(enqueuer)["enqueue_many"] = enqueue_many
    try:
        yield
    finally:
        del vars(enqueuer)["enqueue_many"]


async def _run(app: Penstock, kind: str, ids: Sequence[str]) -> None:
    """Run those of the jobs that can start now, in the order they were enqueued. What a handler
    raises is raised once all have run; of several, the first."""
    raised: list[Exception] = []
    async with app, _claiming(app, kind) as (engine, room):
        want = Want(MOST, room._kinds, True, MOST)
        ran: set[str] = set()
        while leases := await _claim(engine, want, set(ids) - ran):
            for lease in sorted(leases, key=lambda lease: ids.index(lease.id)):
                await asyncio.sleep(max(0.0, lease.start_at - app.queue.now()))
                token = _raised.set(raised)
                try:
                    await InlineWorker(engine.workers._parts).do(lease)
                finally:
                    _raised.reset(token)
                ran.add(lease.id)
    if raised:
        raise raised[0]
    for job in (await app.queue.get(list(ran))).values():
        if job.error is not None:  # cut short, or refused before its handler was called
            raise JobFailed(job.id, job.kind, job.error)


async def _claim(engine: Engine, want: Want, ids: set[str]) -> list[Lease]:
    """Those of the jobs that can start now, once the slots of others are free again."""
    claims = engine.claims
    while claims.held:  # noqa: ASYNC110 (until their ends are stored: nobody tells)
        await asyncio.sleep(MOMENT)
    exchange = await engine.membership.member.exchange([], [], want)
    for lease in exchange.leases:
        claims.held[lease.id] = lease
        if lease.id not in ids:
            claims.hand_back(lease)
    return [lease for lease in exchange.leases if lease.id in ids]


@asynccontextmanager
async def _claiming(app: Penstock, kind: str) -> AsyncIterator[tuple[Engine, Room]]:
    """The engine of a process for this kind, whose workers are the caller's."""
    await app.apply_lanes()
    orchestrator = app.orchestrator(kinds=[kind])
    handlers = orchestrator._handlers
    orchestrator._handlers = Handlers(
        {name: _told(handler) for name, handler in handlers.items()}, handlers.settings
    )
    orchestrator.max_workers = 0
    await orchestrator.start()
    try:
        engine = orchestrator._engine
        queue = engine.claims.internal_queue
        queue.come_back = _place  # type: ignore[method-assign]
        yield engine, engine.dispatcher.room
    finally:
        await orchestrator.stop()


def _place() -> asyncio.Future[None]:
    """A job that has waited for others goes on at once."""
    place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    place.set_result(None)
    return place


def _told(handler: Handler) -> Handler:
    """The handler, and who has enqueued the job is told what it raises."""
    function: Callable[..., Any] = handler.function

    def tell(error: Exception) -> None:
        if (raised := _raised.get()) is not None:
            raised.append(error)

    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except NOT_ATTEMPTS:
            raise
        except Exception as error:
            tell(error)
            raise

    @wraps(function)
    def run_in_thread(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except NOT_ATTEMPTS:  # it is run again later
            raise
        except Exception as error:
            tell(error)
            raise

    return replace(handler, function=run if handler.is_async else run_in_thread)
