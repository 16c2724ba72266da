"""The parts of a job queue, and of a membership of it, that all queues share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict

from penstock.adapters.life_file import LifeFile, Started, started_jobs
from penstock.errors import ConfigError
from penstock.model.ids import new_id
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Inbox, Lease, Member
from penstock.ports.steps import StepRow


class Joining(NamedTuple):
    """The words of a worker process that joins a queue; see `JobQueue.join`."""

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


class QueueOptions(TypedDict, total=False):
    """Options of every queue."""

    ageing_seconds: float
    retention_seconds: float
    usage_retention_seconds: float
    lane_config: Callable[[str], LaneConfig]
    weights: Mapping[str, float] | None


class JoiningMember(Member, Protocol):
    async def join(self) -> None: ...


class BaseQueue(ABC):
    """The common part of `penstock.ports.queue.JobQueue`."""

    def __init__(
        self,
        *,
        ageing_seconds: float = 300.0,
        retention_seconds: float = 7 * 86400.0,
        usage_retention_seconds: float = 90 * 86400.0,
        lane_config: Callable[[str], LaneConfig] = lambda name: LaneConfig(),
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.ageing_seconds = ageing_seconds
        self.retention_seconds = retention_seconds
        self.usage_retention_seconds = usage_retention_seconds
        self.lane_config = lane_config
        self.weights = dict(weights or {})

    @abstractmethod
    def new_member(self, joining: Joining) -> JoiningMember: ...

    async def join(
        self,
        kinds: Sequence[str],
        max_workers: int,
        lease_seconds: float,
        inbox: Inbox | None = None,
    ) -> Member:
        member = self.new_member(Joining(sorted(kinds), max_workers, lease_seconds, inbox))
        await member.join()
        return member
