"""Builds the engine of a worker process: each part gets the ones before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.background import Repeated, Service
from penstock.engine.claims import Claims
from penstock.engine.context import Services
from penstock.engine.dispatcher import Dispatcher
from penstock.engine.enqueuer import Enqueuer
from penstock.engine.events import EngineEvents
from penstock.engine.handlers import Handlers
from penstock.engine.lane_times import LaneTimes
from penstock.engine.listeners import CancelListener, ReadyListener
from penstock.engine.loop_monitor import LoopLag, LoopWatch
from penstock.engine.membership import Membership
from penstock.engine.outcomes import Endings
from penstock.engine.parking import Parking
from penstock.engine.queue_health import QueueHealth
from penstock.engine.recording import Recording
from penstock.engine.requests import Requests
from penstock.engine.room import Room
from penstock.engine.running import Running
from penstock.engine.schedule_watch import ScheduleWatch
from penstock.engine.settler import Settler
from penstock.engine.status import EngineStatus
from penstock.engine.waiters import JobWaiters
from penstock.engine.watchdog import Watchdog
from penstock.engine.worker import WorkerParts, Workers
from penstock.lanes.reports import LaneReports
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue

if TYPE_CHECKING:
    from penstock.engine.step_results import StepResults
    from penstock.engine.ticker import Ticker

CHORE_UPKEEPS = 4
"""Chores are done once in this many times of upkeep: nobody's job waits for them."""

Chore = Callable[[], Awaitable[None]]
"""Something to be done now and then where workers run."""


@dataclass(slots=True, frozen=True)
class Engine:
    """The parts that have to be started and stopped, or are asked from outside."""

    events: EngineEvents
    claims: Claims
    running: Running
    watchdog: Watchdog
    health: QueueHealth
    status: EngineStatus
    membership: Membership
    waiters: JobWaiters
    services: Services
    dispatcher: Dispatcher
    workers: Workers
    loop_watch: LoopWatch
    background: Sequence[Service]
    ticking: Sequence[Service]
    """Make jobs, so they end first."""


def assemble(
    queue: JobQueue,
    handlers: Handlers,
    settings: EngineConfig,
    enqueuer: Enqueuer,
    chores: Sequence[Chore],
    max_workers: int,
    state: Any,
    step_results: Callable[[], StepResults | None],
) -> Engine:
    """Nothing is started, and the queue has not been asked for anything. `state` is what the
    lifespan has yielded."""
    events = EngineEvents()
    settler = Settler(settings, events)
    claims = Claims(settings.internal_queue, settler, events, queue.now)
    running = Running(events)
    reports = LaneReports()
    endings = Endings(running, settler, reports, handlers, settings, LaneTimes(queue.lane_config))
    watchdog = Watchdog(running, endings, queue.now)
    health, lag = QueueHealth(), LoopLag()
    loop_watch = LoopWatch(lag, running, events, queue.now)
    ticking: list[Ticker] = []
    if any(handler.periodic for handler in handlers.values()):
        from penstock.engine.ticker import tickers

        ticking = tickers(queue, handlers, enqueuer, settings)
    status = EngineStatus(claims, running, health, lag, loop_watch, ticking)
    membership = Membership(
        queue,
        sorted(handlers),
        max_workers,
        settings,
        events,
        settler,
        claims,
        running,
        watchdog,
        status,
    )
    waiters = JobWaiters(queue)
    parking = Parking(claims, running, watchdog, waiters)
    requests = Requests(queue, settings, membership, settler, reports, parking, claims.slack)
    loop = asyncio.get_running_loop()
    recording = Recording(queue, settings, step_results)
    services = Services(
        settler, running, enqueuer, requests, parking, handlers, recording, loop, state
    )
    room = Room(settings, handlers, claims, running, queue.now)
    dispatcher = Dispatcher(
        queue,
        settings,
        handlers,
        events,
        settler,
        claims,
        running,
        membership,
        requests,
        health,
        room,
    )
    parts = WorkerParts(
        handlers, claims, running, membership, endings, watchdog, loop_watch, services
    )
    pause = settings.upkeep_seconds
    ticking_chores: list[Chore] = [*ticking]
    if max_workers:
        ticking_chores.append(ScheduleWatch(queue))
    background = [
        ReadyListener(queue, claims, requests),
        CancelListener(queue, settings.poll_seconds, events, membership, claims, running, watchdog),
        Repeated("upkeep", membership.upkeep, pause),
        # Apart from the upkeep: a probe may hang for its whole time-out.
        Repeated("probe", membership.probe_troubled, pause),
        lag,
        *(Repeated("chore", chore, CHORE_UPKEEPS * pause) for chore in chores),
    ]
    return Engine(
        events,
        claims,
        running,
        watchdog,
        health,
        status,
        membership,
        waiters,
        services,
        dispatcher,
        Workers(max_workers, events, parts),
        loop_watch,
        background,
        [Repeated("ticker", ticker, CHORE_UPKEEPS * pause) for ticker in ticking_chores],
    )
