"""Decides the outcome of a run that did not complete, and hands outcomes to the settler."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from penstock.engine.failure import described, formatted
from penstock.engine.handlers import Handler, Handlers
from penstock.engine.lane_times import LaneTimes
from penstock.engine.log_fields import of_lease
from penstock.engine.retry import retry_delay
from penstock.engine.run import Interrupt, Run
from penstock.engine.running import Running
from penstock.engine.settler import Settler
from penstock.errors import (
    AuthenticationError,
    BudgetReached,
    DeadlineExceeded,
    JobTimeout,
    LaneBusy,
    QueueUnavailable,
    ReleasedTooOften,
    RunLater,
    Suspended,
    is_permanent,
)
from penstock.lanes.reports import LaneReports
from penstock.model.job import RELEASE_LIMIT
from penstock.model.settings import EngineConfig
from penstock.ports.lanes import News, Report, Returned
from penstock.ports.queue import Outcome, Settlement
from penstock.ports.steps import SLEEP_WAIT, signal_wait
from penstock.text.normalize import storable

MAX_WAIT_SECONDS = 300.0
BUDGET_WAIT_SECONDS = 86400.0
"""Until a job asks again whose budget is spent, at the latest."""
STUCK_RELEASE_SECONDS = 2.0
"""A job whose handler outlives a stop is not offered to others before the process is gone."""


def interrupted(
    run: Run, handler: Handler, settings: EngineConfig, reports: LaneReports, *, stuck: bool
) -> Settlement | None:
    """The end of a run that was cut short; None when it no longer has a lease to end."""
    match run.interrupted:
        case Interrupt.TIMEOUT:
            return failed(run, run.timed_out(), handler, settings, reports, stuck=stuck)
        case Interrupt.DEADLINE:
            late = DeadlineExceeded("its deadline passed")
            return failed(run, late, handler, settings, reports)
        case Interrupt.CANCELLED:
            return Settlement(run.lease, Outcome.CANCEL_SEEN)
        case Interrupt.STOPPING:
            later = run.member.now() + STUCK_RELEASE_SECONDS if stuck else 0.0
            return Settlement(run.lease, Outcome.HANDED_BACK, run_at=later)
        case _:
            return None


def suspended(run: Run, why: Suspended) -> Settlement:
    """What becomes of a job that sleeps, or waits for a signal."""
    note = {"type": "Suspended", "message": why.reason}
    waits = SLEEP_WAIT if why.signal is None else signal_wait(why.signal)
    return Settlement(
        run.lease,
        Outcome.SUSPENDED,
        run.started_at,
        error=note,
        run_at=why.until,
        waits_lane=waits,
        signal=why.signal,
    )


def failed(
    run: Run,
    error: BaseException,
    handler: Handler,
    settings: EngineConfig,
    reports: LaneReports,
    *,
    stuck: bool = False,
) -> Settlement:
    """What becomes of a job whose run ended with `error`."""
    lease, now = run.lease, run.member.now()
    if isinstance(error, RunLater):
        late = lease.deadline is not None and now + error.delay >= lease.deadline
        if not late and lease.releases < RELEASE_LIMIT:
            note = {"type": "RunLater", "message": storable(error.reason)}
            return _released(run, note, now + error.delay)
        error = (
            DeadlineExceeded(f"asked to be run in {error.delay:g} s, past its deadline")
            if late
            else ReleasedTooOften(f"released by its handler {RELEASE_LIMIT} times")
        )
    if isinstance(error, LaneBusy):
        note = {"type": "LaneBusy", "message": str(error)}
        # It is queued when the lane recovers; the time is for the case that nobody notices.
        longest = BUDGET_WAIT_SECONDS if isinstance(error, BudgetReached) else MAX_WAIT_SECONDS
        run_at = min(max(now, error.until), now + longest)
        return _released(run, note, run_at)._replace(waits_lane=error.lane)
    if isinstance(error, QueueUnavailable):
        # Ours, not the job's. A moment later, because it may be another queue that is away.
        note = {"type": "QueueUnavailable", "message": storable(str(error))}
        run_at = now + settings.reconnect_cap_seconds
        return _released(run, note, run_at)
    report = None if _own_doing(run, error) else reports.of(error)
    # Of a lane that the job has left it tells nothing.
    own = bool(lease.lane) and run.in_lane
    in_lane = report is not None and bool(own or report.lane)
    # Refused in a lane: three in a row are the credentials' fault, and then nothing dies of it.
    refused = in_lane and isinstance(error, AuthenticationError)
    permanent = is_permanent(error, handler.permanent) and not refused
    description = described(error, handler, retryable=not permanent)
    max_retries = handler.max_retries if lease.max_retries is None else lease.max_retries
    ended = Settlement(
        lease,
        Outcome.FAILED,
        run.started_at,
        now,
        error=description,
        traceback=formatted(error, handler),
        report=report if in_lane else None,
    )
    if permanent or lease.attempts > max_retries:
        return ended
    run_at = now + retry_delay(lease.attempts, settings, handler.backoff)
    if stuck:
        run_at = max(run_at, now + settings.lease_seconds)
    if lease.deadline is not None and run_at >= lease.deadline:
        description["message"] += " (no retry: the deadline is earlier)"
        return ended
    return ended._replace(outcome=Outcome.RETRY, run_at=run_at)


def _released(run: Run, why: dict[str, Any], run_at: float) -> Settlement:
    times = run.started_at, run.member.now()
    return Settlement(run.lease, Outcome.RELEASED, *times, error=why, run_at=run_at)


def _own_doing(run: Run, error: BaseException) -> bool:
    """Whether a time-out or connection error says nothing of the job's lane: the handler's request
    was answered, and what it did afterwards is its own affair; or it has blocked the event loop.
    (Where it raises Unavailable it means the lane.)"""
    if isinstance(error, JobTimeout) and run.blocked_at:
        return True
    return run.answered and isinstance(error, (TimeoutError, ConnectionError))


log = logging.getLogger("penstock")


@dataclass(eq=False)
class Endings:
    """The ends of the runs of a process."""

    running: Running
    settler: Settler
    reports: LaneReports
    handlers: Handlers
    settings: EngineConfig
    times: LaneTimes

    def failed(self, run: Run, error: BaseException) -> Settlement:
        handler = self.handlers[run.lease.kind]
        return failed(run, error, handler, self.settings, self.reports)

    def interrupted(self, run: Run, *, stuck: bool) -> None:
        """Settle a run that was cut short. `stuck`: its handler goes on."""
        handler = self.handlers[run.lease.kind]
        ended = interrupted(run, handler, self.settings, self.reports, stuck=stuck)
        if stuck:
            message = "job %s (%s) is settled but its handler is still running"
            log.warning(message, run.lease.id, run.lease.kind, extra=of_lease(run.lease))
            self.running.stick(run, hold=ended is not None and ended.outcome is Outcome.RETRY)
        self.settle(run, ended)

    def give_up(self, run: Run) -> None:
        """The handler goes on although it was cancelled: the job does not wait for it."""
        if self.running.has(run):
            self.running.end(run)
            run.given_up = True
            self.interrupted(run, stuck=True)
            self.running.freed()

    def settle(self, run: Run, settlement: Settlement | None) -> None:
        if run.slot_again is not None:
            self.settler.give_back(Returned(run.slot_again, None, 0, 0))
            run.slot_again = None
        if settlement is not None:
            settlement = self._with_answer(run, settlement)
            if settlement.report is not None:
                took = max(0.0, run.member.now() - run.started_at)
                settlement = settlement._replace(report=self._timed(run, settlement.report, took))
            run.ended = settlement
            self.settler.add(settlement, run)

    def _timed(self, run: Run, report: Report, took: float) -> Report:
        """A run is a request, unless it has made one in its lane that says how long that took."""
        took, bill = run.heard or (took, None)
        return self.times.told(report, run.lane, took, bill)

    def _with_answer(self, run: Run, settlement: Settlement) -> Settlement:
        """Let the job's lane learn that a request was answered, however its handler ended."""
        report = settlement.report
        if not run.answered:
            return settlement
        run.answered = False
        if report is None:
            return settlement._replace(report=Report(News.SUCCESS))
        if report.lane not in (None, run.lane):
            self.settler.tell(run, Report(News.SUCCESS))
        return settlement
