"""The parts of a job queue that all queues share: its options, and joining it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypedDict

from penstock.adapters.member import Joining
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Inbox, Member


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
