"""One run of one job, from the start of its handler to its settlement."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextvars import ContextVar
from enum import Enum
from math import inf
from typing import Any

from penstock import runtime
from penstock.engine.lane_times import Heard
from penstock.errors import DeadlineExceeded, JobTimeout, PenstockError, Suspended
from penstock.ports.lanes import Permit
from penstock.ports.queue import Lease, Member, Settlement


class Interrupt(Enum):
    """Why a run is cut short."""

    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    STOPPING = "stopping"
    LEASE_LOST = "lease lost"


class Run:
    """A run under way."""

    __slots__ = (
        "_slot",
        "_stopped_at",
        "_stops",
        "_timeout_at",
        "answered",
        "blocked_at",
        "calls",
        "ended",
        "for_others",
        "for_permits",
        "given_up",
        "heard",
        "in_lane",
        "interrupted",
        "lease",
        "lent_slot",
        "limit",
        "member",
        "permit_used",
        "placed",
        "requests",
        "slot_again",
        "slot_coming",
        "slot_used",
        "started_at",
        "suspended",
        "task",
        "waits",
        "worker_since",
    )

    def __init__(
        self,
        lease: Lease,
        member: Member,
        task: asyncio.Task[None],
        started_at: float,
        limit: float,
    ) -> None:
        self.lease = lease
        self.member = member
        self.task = task
        self.started_at = started_at
        self.limit = limit
        self._timeout_at = started_at + limit
        self._stops = 0
        self._stopped_at = 0.0
        self._slot: int | None = member.mark_started(lease)
        self.interrupted: Interrupt | None = None
        self.ended: Settlement | None = None
        """How it ended, once that is known."""
        self.given_up = False
        """Settled while its handler went on in spite of being cancelled."""
        self.permit_used = lease.void_at == inf
        """The permit the job was started with has paid for a request; or it was suspended since."""
        self.blocked_at = ""
        """Where its handler has blocked the event loop, if it has."""
        self.answered = False
        """That request was answered, which its lane has yet to learn."""
        self.heard: Heard | None = None
        """What its lane learns from that answer, if it does."""
        self.in_lane = bool(lease.lane)
        """Whether it has a slot in its lane."""
        self.slot_used = False
        """A request of it goes by that slot at the moment."""
        self.lent_slot = False
        """It has given the slot back only while it waits for permits in other lanes."""
        self.slot_again: Permit | None = None
        """The slot it has had since; None: the one it was started with, or none."""
        self.slot_coming: asyncio.Future[None] | None = None
        self.placed = True
        """Whether it has a worker; not while it waits for other jobs, or for permits."""
        self.worker_since = runtime.monotonic()
        self.waits = self.for_others = self.for_permits = 0
        """How many tasks of the handler go without a worker; of them, those that wait for other
        jobs, and those whose request had to wait for its permit, until it is over."""
        self.requests = 0
        """Permits that tasks of the handler hold, or wait for."""
        self.suspended: Suspended | None = None
        """What its handler is unwound by, because it sleeps or waits for a signal."""
        self.calls: set[Future[Any]] | None = None
        """What its thread waits for on the event loop; made when that asks for something."""

    @property
    def lane(self) -> str:
        return self.lease.lane

    @property
    def deadline(self) -> float:
        """When it is cut short: by its timeout, unless it waits for permits again, or by the
        deadline of its job."""
        at = self._timeout_at
        if self._stops:
            at += self.member.now() - self._stopped_at
        absolute = self.lease.deadline
        return at if absolute is None or at < absolute else absolute

    @property
    def next_look(self) -> float:
        """When to look whether it is to be cut short, unless its clock is started before."""
        absolute = self.lease.deadline
        if self._stops:
            return inf if absolute is None else absolute
        return self._timeout_at if absolute is None else min(self._timeout_at, absolute)

    def stop_clock(self) -> None:
        """From here on it waits for its turn, which does not count toward its timeout."""
        if not self._stops:
            self._stopped_at = self.member.now()
        self._stops += 1

    def start_clock(self) -> None:
        """One of its waits is over; the clock goes on after the last one."""
        self._stops -= 1
        if not self._stops:
            self._timeout_at += self.member.now() - self._stopped_at

    def left(self) -> float:
        return self.deadline - self.member.now()

    def overdue(self) -> PenstockError:
        absolute = self.lease.deadline
        if absolute is not None and absolute <= self.member.now():
            return DeadlineExceeded("the deadline passed between two requests")
        return self.timed_out()

    def timed_out(self) -> JobTimeout:
        message = f"took longer than its timeout of {self.limit:g} s"
        if self.blocked_at:
            message += f"; it has blocked the event loop, at {self.blocked_at}"
        return JobTimeout(message)

    def mark(self) -> None:
        """From here on, if the process dies, this run may be why: it is on the job's record."""
        if self._slot is None:
            self._slot = self.member.mark_started(self.lease)

    def unmark(self) -> None:
        """From here on it is not: its outcome is stored, or it only waits for others."""
        if self._slot is not None:
            self.member.clear_started(self._slot)
            self._slot = None

    def interrupt(self, reason: Interrupt) -> None:
        """Cut the run short; see `Watchdog.interrupt`."""
        self.interrupted = reason
        self.task.cancel()
        for call in list(self.calls or ()):
            call.cancel()


current: ContextVar[Run | None] = ContextVar("penstock_run", default=None)
"""The run that is under way here, for code that is not handed its context."""


async def undisturbed(
    work: asyncio.Future[Any], run: Run | None = None
) -> asyncio.CancelledError | None:
    """Wait for `work`, no longer than the run lasts, although whoever waits is cancelled meanwhile
    (a handler's own time-out): it must not be left half done. Returns what is to be raised."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done() and (run is None or run.interrupted is None):
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
