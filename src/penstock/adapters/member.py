"""The parts of a worker process's membership that all queues share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from penstock.adapters.life_file import LifeFile, Started, started_jobs
from penstock.errors import ConfigError
from penstock.model.ids import new_id
from penstock.ports.queue import Inbox, Lease
from penstock.ports.steps import StepRow


class Joining(NamedTuple):
    """What a worker process says of itself when it joins; see `JobQueue.join`."""

    kinds: list[str]
    max_workers: int
    lease_seconds: float
    inbox: Inbox | None


class QueueMember:
    """The common part of `penstock.ports.queue.Member`."""

    transactions = False

    _life: LifeFile
    """Opened by `join`."""

    def __init__(self, joining: Joining) -> None:
        self.id = new_id()
        self._number = 0
        self._kinds, self._max_workers, self._lease_seconds, self._inbox = joining
        self._started: Started | None = None
        """Jobs whose handler has started, where it leaves; None: nobody can tell."""

    async def transact(
        self, lease: Lease, effect: Callable[[Any], Awaitable[StepRow]]
    ) -> StepRow | None:
        raise ConfigError("only a queue in PostgreSQL has transactions to share")

    def mark_started(self, lease: Lease) -> int:
        return self._life.mark(*lease.ref)

    def _still_started(self) -> None:
        """Note what was started and is still held: its outcome could not be stored. The file is
        gone when leaving has to be tried again."""
        if self._life.path.exists():
            self._started = started_jobs(self._life.path)

    def clear_started(self, slot: int) -> None:
        self._life.clear(slot)
