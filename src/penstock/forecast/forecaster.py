"""Makes forecasts: sets up virtual runs of a backlog, and tells what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TypedDict, Unpack

from penstock.errors import ValidationError
from penstock.forecast.durations import ENOUGH, Durations, PastDurations
from penstock.forecast.forecast import Forecast, LineOutcome, LineOutcomes, combine, margin_of
from penstock.forecast.holds import Hold, never
from penstock.forecast.lines import JobGroup
from penstock.forecast.spending import KindUse, first_day, real_use
from penstock.forecast.virtual_run import FIRST_TURN, HORIZON_SECONDS, VirtualRun, VirtualWorkers
from penstock.forecast.what_if import Changes, change_lanes, pools_of
from penstock.lanes.state import DAY, LaneState
from penstock.model.lane import LaneConfig
from penstock.model.settings import EngineConfig
from penstock.ports.backlog import Backlog, RunningJob, WaitingJobs
from penstock.ports.ledger import UsageQuery
from penstock.ports.operators import ProcessInfo
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, JobQueue
from penstock.ports.steps import has_end

MOST_ASKED = 10_000
"""Workers of a process, and processes, that can be asked about."""
TRIP_SECONDS = 0.005
"""From the end of a job to the start of the next in its slot, where no trip is known."""
LATELY_DAYS = 30
INSTALMENTS = 8
"""Scheduled jobs that are alike join their line in so many parts."""


class ForecastOptions(TypedDict, total=False):
    """Options of `forecast`. All jobs are run; `kind` (or a pattern) and `tenant` say of which it
    tells."""

    kind: str | None
    tenant: str | None
    changes: Changes | None
    """What if lanes had other limits, by lane and key; `resumed` is a key, too."""
    workers: int | None
    """What if each process had so many workers."""
    processes: int | None
    """What if there were so many processes."""
    progress: Callable[[float], None]
    """Called with the share that is done."""


async def forecast(
    queue: JobQueue, config_of: Callable[[str], LaneConfig], **options: Unpack[ForecastOptions]
) -> Forecast:
    """Forecast what is in a queue. Other tasks get their turn every few milliseconds."""
    workers, processes = options.get("workers"), options.get("processes")
    for name, number in (("workers", workers), ("processes", processes)):
        if number is not None and not 1 <= number <= MOST_ASKED:
            raise ValidationError(f"{name} must be from 1 to {MOST_ASKED:,}, not {number!r}")
    there = await queue.processes()
    backlog = await queue.backlog()
    spent, spenders = await _spent(queue, backlog)
    forecaster = Forecaster(
        backlog,
        there,
        config_of,
        changes=options.get("changes"),
        workers=workers,
        processes=processes,
        spent=spent,
        spenders=spenders,
    )
    for told in forecaster.run(options.get("kind"), options.get("tenant")):
        if isinstance(told, Forecast):
            return told
        if "progress" in options:
            options["progress"](told)
        await asyncio.sleep(0)
    raise AssertionError("a forecast ends with one")


class Forecaster:
    """A backlog, the worker processes that live, and what is asked about. Its runs are made from
    scratch each time, so what one has changed the next does not see."""

    def __init__(
        self,
        backlog: Backlog,
        there: Sequence[ProcessInfo],
        config_of: Callable[[str], LaneConfig],
        *,
        changes: Changes | None = None,
        workers: int | None = None,
        processes: int | None = None,
        spent: Mapping[str, KindUse] | None = None,
        spenders: Collection[str] = (),
    ) -> None:
        self._backlog = backlog
        self._config_of = config_of
        self._changes = changes or {}
        live = [
            one for one in there if one.lease_until > backlog.at and not one.status.get("draining")
        ]
        self.pools = pools_of(
            [(one.id, one.max_workers, one.kinds) for one in live],
            workers,
            processes,
            EngineConfig().max_workers,
        )
        self._past = PastDurations(backlog, live)
        self._trip = _trip_seconds(live)
        jobs: dict[tuple[str, str], int] = {}
        for one in backlog.waiting:
            key = one.kind, _lane(one)
            jobs[key] = jobs.get(key, 0) + one.size
        for job in backlog.running:
            key = job.kind, _lane(job)
            jobs[key] = jobs.get(key, 0) + 1
        self._durations = {key: self._past.of(*key) for key in jobs}
        self._doubts = {key: self._durations[key].doubt(many) for key, many in jobs.items()}
        self._spent = spent or {}
        reserving = {one.kind for one in backlog.waiting if any(one.amount)}
        reserving |= {job.kind for job in backlog.running if any(job.amount)}
        self._uncounted = set(spenders) - self._spent.keys() - reserving
        self._shares = self._learn_shares()
        self._use: dict[tuple[str, str], float] = {}
        self._bounds = False
        for kind, lane in jobs:
            told = self._spent.get(kind)
            share = self._shares.get(lane)
            if share is None and told is not None:
                share = told.share
            if share is not None:
                self._use[lane, kind] = share
        self._bounds = any(
            (_lane(one), one.kind) not in self._use for one in backlog.waiting if any(one.amount)
        )
        self._lane_states()  # bad questions are answered before anything is run

    def runs(self) -> list[Callable[[], VirtualRun]]:
        """As usual, and with runs that take longer, or are shorter, by as much as is in doubt."""
        slow = {key: 1 + doubt for key, doubt in self._doubts.items()}
        quick = {
            key: 1 / (1 + doubt) if not self._durations[key].known else max(0.05, 1 - doubt)
            for key, doubt in self._doubts.items()
        }
        usual: dict[tuple[str, str], float] = {}
        return [partial(self._run, factors) for factors in (usual, slow, quick)]

    def run(self, kind: str | None = None, tenant: str | None = None) -> Iterator[float | Forecast]:
        """Run them all: shares that are done, and at last the forecast, of the jobs of a kind (or a
        pattern) and tenant among all others."""
        runs = self.runs()
        outcomes: list[LineOutcomes] = []
        for n, begin in enumerate(runs):
            run = begin()
            for share in run.run():
                yield (n + share) / len(runs)
            outcomes.append(self._outcomes(run, kind, tenant))
        yield self._tell(outcomes)

    def _run(self, factors: Mapping[tuple[str, str], float]) -> VirtualRun:
        backlog = self._backlog
        workers = [VirtualWorkers(pool, pool.workers) for pool in self.pools]
        durations = {key: one.times(factors.get(key, 1.0)) for key, one in self._durations.items()}
        run = VirtualRun(backlog.at, self._lane_states(), workers, durations, self._trip, self._use)
        for job in backlog.running:
            self._resume(run, workers, durations, job)
        for one in backlog.waiting:
            if self._handled(one.kind) and not _waits_for_signal(one):
                run.total += one.size
                _expect(run, one)
        return run

    def _lane_states(self) -> dict[str, LaneState]:
        """The lanes, with slots for those jobs that hold them. (Permits inside of jobs are taken
        to come back at once: nobody knows how long they are held.)"""
        states = {str(row["name"]): LaneState(**row) for row in self._backlog.lanes}
        for lane in states.values():
            lane.in_flight = lane.asking = 0
            if lane.amounts is not None:
                from penstock.lanes.amounts import settle_open

                settle_open(lane, self._shares.get(lane.name, 1.0), self._backlog.at)
        change_lanes(states, self._changes, self._config_of, self._backlog.at)
        return states

    def _resume(
        self,
        run: VirtualRun,
        workers: Sequence[VirtualWorkers],
        durations: Mapping[tuple[str, str], Durations],
        job: RunningJob,
    ) -> None:
        """A job that a process holds runs to its end; or joins its line again, where the process is
        gone, or has claimed it ahead."""
        lane = _lane(job)
        group = JobGroup(job.kind, lane, job.tenant, job.band, 1, FIRST_TURN, 0.0, job.amount)
        own = next((one for one in workers if job.process in one.pool.processes), None)
        if own is not None and (own.free > 0 or lane != NO_LANE):
            run.total += 1
            group.count = 0
            elapsed = self._backlog.at - job.started_at
            run.hold(group, own, self._backlog.at + durations[job.kind, lane].left(elapsed))
        elif self._handled(job.kind):
            run.total += 1
            run.join(group)

    def _handled(self, kind: str) -> bool:
        return any(pool.kinds is None or kind in pool.kinds for pool in self.pools)

    def _learn_shares(self) -> dict[str, float]:
        """The share of what was reserved that was really used, by lane: what is settled of this
        day, of what the jobs had reserved that have ended in it."""
        from penstock.lanes.amounts import settled_today

        at = self._backlog.at
        waiting = {_lane(one) for one in self._backlog.waiting if any(one.amount)}
        shares: dict[str, float] = {}
        for row in self._backlog.lanes:
            lane = LaneState(**row)
            if lane.name not in waiting:
                continue
            runs = self._past.since(lane.name, lane.day_of(at) * DAY + lane.day_offset)
            if runs is None or len(runs) < ENOUGH:
                continue
            used = settled_today(lane, at)
            tokens = sum(one.amount.tokens for one in runs)
            cost = sum(one.amount.cost for one in runs)
            if tokens or cost:
                shares[lane.name] = used.cost / cost if cost else used.tokens / tokens
        return shares

    # What came of a run.

    def _outcomes(self, run: VirtualRun, kind: str | None, tenant: str | None) -> LineOutcomes:
        def asked(of_kind: str, of_tenant: str) -> bool:
            return (kind is None or fnmatchcase(of_kind, kind)) and tenant in (None, of_tenant)

        found: LineOutcomes = {}

        def line(lane: str, of: str) -> LineOutcome:
            return found.setdefault((lane, of), LineOutcome())

        for (lane, of, owner), tally in run.tallies.items():
            if not asked(of, owner):
                continue
            one = line(lane, of)
            one.jobs += tally.jobs
            one.done_at = max(one.done_at, tally.done_at)
            if tally.first_at is not None:
                one.first_at = min(one.first_at, tally.first_at)
            one.last_at = max(one.last_at, tally.last_at)
            one.tokens += tally.tokens
            one.cost += tally.cost
            told = self._spent.get(of)
            if told is not None and told.share is None:  # what they use is reserved by no start
                one.tokens += tally.jobs * told.tokens
                one.cost += tally.jobs * told.cost
            for by, seconds in run.held.get(lane, {}).items():
                one.holds[by.hold, by.lane] = seconds
        for (lane, of), waiting in run.lines.items():
            for *_, group in waiting.groups:
                if group.count and asked(of, group.tenant):
                    self._stay(run, line(lane, of), group)
        for at, _, event in run.events:
            if isinstance(event, JobGroup) and asked(event.kind, event.tenant):
                assert at > run.begun + HORIZON_SECONDS
                self._stay(run, line(event.lane, event.kind), event)
        for one_kind in self._backlog.waiting:
            if asked(one_kind.kind, one_kind.tenant):
                self._never_begun(line, one_kind)
        for job in self._backlog.running:
            if not self._handled(job.kind) and asked(job.kind, job.tenant):
                one = line(_lane(job), job.kind)
                one.stays += 1
                one.holds = {(Hold.NOBODY, ""): 1.0}
        return found

    def _stay(self, run: VirtualRun, one: LineOutcome, group: JobGroup) -> None:
        by = never(run.family(group.lane))
        one.stays += group.count
        one.holds = {(Hold.HORIZON, "") if by is None else (by.hold, by.lane): 1.0}

    def _never_begun(self, line: Callable[[str, str], LineOutcome], jobs: WaitingJobs) -> None:
        if self._handled(jobs.kind) and not _waits_for_signal(jobs):
            return
        one = line(_lane(jobs), jobs.kind)
        one.stays += jobs.size
        signal = _waits_for_signal(jobs)
        if not (signal and one.jobs):
            one.holds = {(Hold.SIGNAL if signal else Hold.NOBODY, ""): 1.0}

    def _tell(self, outcomes: Sequence[LineOutcomes]) -> Forecast:
        at, (usual, *others) = self._backlog.at, outcomes
        lines = combine(usual, others, at)
        ends = [max((one.done_at for one in outcome.values()), default=0.0) for outcome in outcomes]
        done = ends[0] or None
        costs = [line.cost for line in lines if line.cost is not None]
        return Forecast(
            at=at,
            jobs=sum(line.jobs + line.stays for line in lines),
            stays=sum(line.stays for line in lines),
            done_at=done,
            margin_seconds=0.0 if done is None else margin_of(at, done, [e for e in ends[1:] if e]),
            tokens=sum(line.tokens for line in lines),
            cost=sum(costs) if costs else None,
            workers=sum(pool.workers for pool in self.pools),
            lines=lines,
            unknown_kinds=sorted(
                {kind for (kind, _), one in self._durations.items() if not one.known}
                & {line.kind for line in lines}
            ),
            bounds=self._bounds and any(line.tokens or line.cost for line in lines),
            uncounted_kinds=sorted(self._uncounted & {line.kind for line in lines}),
        )


async def _spent(queue: JobQueue, backlog: Backlog) -> tuple[Mapping[str, KindUse], list[str]]:
    """As the ledger tells it, of the days of which all ended jobs are known; and all kinds that
    have spent anything lately."""
    since = first_day(backlog.past, backlog.at)
    lately = int(backlog.at // DAY) - LATELY_DAYS if since is None else since
    usage = await queue.usage(UsageQuery("kind", since=lately))
    spenders = [one.name for one in usage if one.tokens or one.cost]
    return {} if since is None else real_use(backlog, usage, since), spenders


def _lane(one: WaitingJobs | RunningJob) -> str:
    """The lane of a job of unknown kind is told when a process knows the kind."""
    return NO_LANE if one.lane == UNKNOWN_LANE else one.lane


def _waits_for_signal(one: WaitingJobs) -> bool:
    return not one.due and not has_end(one.last)


def _expect(run: VirtualRun, one: WaitingJobs) -> None:
    """Jobs that are due are in line; others join it when they are."""
    if one.due:
        run.join(JobGroup.of(one, _lane(one)))
        return
    parts = min(INSTALMENTS, one.size)
    for n in range(parts):
        many = one.size * (n + 1) // parts - one.size * n // parts
        at = one.first + (one.last - one.first) * (n + 0.5) / parts
        group = JobGroup.of(one, _lane(one), many)
        group.turn, group.step = at, 0.0
        run.expect(max(at, run.now), group)


def _trip_seconds(live: Sequence[ProcessInfo]) -> float:
    """What trips to the queue take these processes."""
    trips = sum(one.status.get("trips", 0) for one in live)
    seconds = sum(one.status.get("trip_seconds", 0.0) for one in live)
    return float(seconds / trips) if trips else TRIP_SECONDS
