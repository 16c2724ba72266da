"""Operations for operators of a queue: dead letters, figures, processes, lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from penstock.errors import LaneNotFound
from penstock.lanes.registry import LaneRegistry
from penstock.model.job import Job, JobState
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.operators import DeadGroup, KindCounts, ProcessInfo
from penstock.ports.queue import JobFilter, JobQueue

if TYPE_CHECKING:
    from datetime import date

    from penstock.engine.ticker import PeriodicKind
    from penstock.forecast.forecast import Forecast
    from penstock.forecast.forecaster import ForecastOptions
    from penstock.ports.ledger import UsageBy, UsageSum


class Operations:
    """Operator methods of `Penstock`."""

    queue: JobQueue
    lanes: LaneRegistry

    async def dead_letters(
        self, where: JobFilter | None = None, *, limit: int = 100, before: str | None = None
    ) -> list[Job]:
        """Failed jobs, newest first."""
        return await self.queue.find(_dead(where), limit, before)

    async def redrive(
        self,
        where: JobFilter | None = None,
        *,
        job_id: str | None = None,
        from_scratch: bool = False,
    ) -> int:
        """Put dead letters back in the queue with fresh retries, keeping their history and, unless
        `from_scratch`, the records of their steps. Returns their number."""
        return len(await self.queue.redrive(_dead(where, job_id), from_scratch=from_scratch))

    async def discard(self, where: JobFilter | None = None, *, job_id: str | None = None) -> int:
        """Delete dead letters permanently. Returns their number."""
        return len(await self.queue.discard(_dead(where, job_id)))

    async def counts(self, tenant: str | None = None) -> list[KindCounts]:
        """Number of jobs by kind and state, of one tenant or of all."""
        return await self.queue.counts(tenant)

    async def dead_groups(self, tenant: str | None = None) -> list[DeadGroup]:
        """Dead letters grouped by kind and error, most frequent first."""
        return await self.queue.dead_groups(tenant)

    async def processes(self) -> list[ProcessInfo]:
        """The worker processes of this queue."""
        return await self.queue.processes()

    async def periodic(self) -> list[PeriodicKind]:
        """The periodic kinds that worker processes of this queue handle, and their ticks."""
        from penstock.engine.ticker import periodic_kinds

        return periodic_kinds(await self.queue.processes(), self.queue.now())

    async def usage(
        self,
        by: UsageBy = "day",
        *,
        tenant: str | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> list[UsageSum]:
        """What requests have used, from the ledger: tokens, and money in millionths, of one tenant
        or of all, from one day (UTC) to another. Days from the newest on, others from the dearest
        on. By task (the log of a job) and by job for as long as single charges are kept."""
        from penstock.ports.ledger import usage_query  # most apps have nothing to pay

        return await self.queue.usage(usage_query(by, tenant, since, until))

    async def lane_infos(self) -> list[LaneInfo]:
        """The lanes in use: limits, requests in flight, jobs waiting, breaker, blocks."""
        return await self.queue.lanes()

    async def apply_lanes(self) -> None:
        """Apply the limits configured here to the lanes in use. Done when workers start; other
        lanes get theirs with their first job or permit."""
        in_use = [lane.name for lane in await self.queue.lanes()]
        await self.queue.configure([name for name in in_use if self.lanes.configured(name)])

    async def control_lane(
        self, name: str, control: LaneCommand | Literal["pause", "resume", "reset"]
    ) -> None:
        """Pause a lane, lift its pause or block, or reset it."""
        if self.lanes.knows(name):  # also before anybody has used it
            await self.queue.configure([name])
        if not await self.queue.control(name, LaneCommand(control)):
            raise LaneNotFound(name)

    async def limit_lane(self, name: str, changes: Mapping[str, Any] | None) -> LaneInfo:
        """Override the configured limits of a lane for all processes: `{"max_parallel": 3}`.
        Earlier overrides stay unless named; None restores the configured value of a key, and no
        `changes` restores all. The keys are those of `LaneLimits`."""
        if self.lanes.knows(name):  # also before anybody has used it
            await self.queue.configure([name])
        known = await self._lane_info(name)
        before = {} if known.limits is None else known.limits.given()
        wanted = {} if changes is None else {**before, **changes}
        wanted = {key: value for key, value in wanted.items() if value is not None}
        limits = self.lanes.limits(name, wanted) if wanted else None
        if not await self.queue.limit(name, limits):
            raise LaneNotFound(name)
        return await self._lane_info(name)

    async def forecast(self, **options: Unpack[ForecastOptions]) -> Forecast:
        """When the backlog is done, what it costs, and what holds it up, as things stand, or with
        other limits of lanes (`changes={"embedder": {"max_parallel": 8}}`) or processes."""
        from penstock.forecast.forecaster import forecast

        return await forecast(self.queue, self.lanes.config, **options)

    async def _lane_info(self, name: str) -> LaneInfo:
        for lane in await self.queue.lanes():
            if lane.name == name:
                return lane
        raise LaneNotFound(name)


def _dead(where: JobFilter | None, job_id: str | None = None) -> JobFilter:
    where = replace(where or JobFilter(), states=[JobState.FAILED])
    return where if job_id is None else replace(where, ids=[job_id])
