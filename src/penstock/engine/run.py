"""One run of one job, from the start of its handler to its settlement."""

from __future__ import annotations

import asyncio
from enum import Enum

from penstock.ports.queue import Lease, Member


class Interrupt(Enum):
    """Why a run is cut short."""

    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    STOPPING = "stopping"
    LEASE_LOST = "lease lost"


class Run:
    """What the engine knows of a run under way."""

    __slots__ = (
        "deadline",
        "interrupted",
        "lease",
        "member",
        "permit_used",
        "slot",
        "started_at",
        "stuck",
        "task",
    )

    def __init__(
        self,
        lease: Lease,
        member: Member,
        task: asyncio.Task[None],
        started_at: float,
        deadline: float,
    ) -> None:
        self.lease = lease
        self.member = member
        self.task = task
        self.started_at = started_at
        self.deadline = deadline
        self.slot = member.mark_started(lease)
        self.interrupted: Interrupt | None = None
        self.permit_used = False
        """The permit the job was started with has paid for a request."""
        self.stuck = False
        """Past its end, but its thread has not returned."""

    def interrupt(self, reason: Interrupt) -> None:
        """Cut the run short. Must not be called from inside the handler's own task."""
        if self.interrupted is None:
            self.interrupted = reason
            self.task.cancel()
