"""The parts of a worker process's membership that all queues share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from penstock.adapters.life_file import LifeFile
from penstock.errors import ConfigError
from penstock.model.ids import new_id
from penstock.ports.queue import Lease
from penstock.ports.steps import StepRow


class QueueMember:
    """The common part of `penstock.ports.queue.Member`."""

    transactions = False

    _life: LifeFile
    """Opened by `join`."""

    def __init__(self, kinds: Sequence[str], max_workers: int, lease_seconds: float) -> None:
        self.id = new_id()
        self._number = 0
        self._kinds = sorted(kinds)
        self._max_workers = max_workers
        self._lease_seconds = lease_seconds

    async def transact(
        self, lease: Lease, effect: Callable[[Any], Awaitable[StepRow]]
    ) -> StepRow | None:
        raise ConfigError("only a queue in PostgreSQL has transactions to share")

    def mark_started(self, lease: Lease) -> int:
        return self._life.mark(*lease.ref)

    def clear_started(self, slot: int) -> None:
        self._life.clear(slot)
