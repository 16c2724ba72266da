"""One run of one job, from the start of its handler to its settlement."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from penstock.model.errors import DeadlineExceeded, JobTimeout, PenstockError
from penstock.ports.queue import Lease, Member, Settlement

CANCEL_SECONDS = 1.0
"""How long an interrupted handler may take to clean up; after that its job is settled."""


class Interrupt(Enum):
    """Why a run is cut short."""

    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    STOPPING = "stopping"
    LEASE_LOST = "lease lost"


class Ongoing(Protocol):
    """What requests are made for, and until when: the run of a job, or a visit to a service."""

    @property
    def lane(self) -> str:
        """That requests are made in unless told otherwise; '' for none."""
        ...

    def left(self) -> float:
        """Seconds until the deadline; less than 0 after it."""
        ...

    def overdue(self) -> PenstockError:
        """What to raise when nothing is left."""
        ...


class Run:
    """What the engine knows of a run under way."""

    __slots__ = (
        "_give_up",
        "_slot",
        "_timer",
        "deadline",
        "ended",
        "given_up",
        "in_lane",
        "interrupted",
        "lease",
        "limit",
        "member",
        "paused_at",
        "pauses",
        "permit_used",
        "placed",
        "started_at",
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
        deadline: float,
        limit: float,
        give_up: Callable[[Run], None],
    ) -> None:
        self.lease = lease
        self.member = member
        self.task = task
        self.started_at = started_at
        self.deadline = deadline
        self.limit = limit
        self._slot: int | None = member.mark_started(lease)
        self.interrupted: Interrupt | None = None
        self.ended: Settlement | None = None
        """How it ended, once that is known."""
        self.given_up = False
        """Settled while its handler went on in spite of being cancelled."""
        self.permit_used = False
        self.in_lane = bool(lease.lane)
        """Whether it has the slot in its lane that it was started with."""
        """The permit the job was started with has paid for a request."""
        self.placed = True
        """Whether it has a worker; not while it waits for other jobs."""
        self.worker_since = started_at
        self.waits = 0
        """How many tasks of the handler wait for other jobs."""
        self.pauses = 0
        """How many tasks of the handler wait in ways that do not count toward its timeout."""
        self.paused_at: float | None = None
        """Since when; None while its timeout runs."""
        self._give_up = give_up
        self._timer: asyncio.TimerHandle | None = None

    @property
    def lane(self) -> str:
        return self.lease.lane

    @property
    def due(self) -> float:
        """When it is to be cut short, as things stand: while its timeout is paused, at the
        deadline of its job."""
        if self.paused_at is None:
            return self.deadline
        return math.inf if self.lease.deadline is None else self.lease.deadline

    def left(self) -> float:
        now = self.member.now() if self.paused_at is None else self.paused_at
        return self.deadline - now

    def pause_timeout(self) -> None:
        """The time until `resume_timeout` does not count toward its timeout, only toward the
        deadline of its job."""
        self.pauses += 1
        if self.paused_at is None:
            self.paused_at = self.member.now()

    def resume_timeout(self) -> None:
        """Must follow each `pause_timeout`; the watchdog is to look at `due` again then."""
        self.pauses -= 1
        if not self.pauses and self.paused_at is not None:
            self.deadline += max(0.0, self.member.now() - self.paused_at)
            if self.lease.deadline is not None:
                self.deadline = min(self.deadline, self.lease.deadline)
            self.paused_at = None

    def overdue(self) -> PenstockError:
        absolute = self.lease.deadline
        if absolute is not None and absolute <= self.member.now():
            return DeadlineExceeded("its deadline passed between two requests")
        return JobTimeout(f"took longer than its timeout of {self.limit:g} s")

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
        """Cut the run short. Must not be called from inside the handler's own task."""
        if self.interrupted is None:
            self.interrupted = reason
            self.task.cancel()
            loop = self.task.get_loop()
            self._timer = loop.call_later(CANCEL_SECONDS, self._give_up, self)

    def stop_waiting(self) -> None:
        """The handler has ended."""
        if self._timer is not None:
            self._timer.cancel()
