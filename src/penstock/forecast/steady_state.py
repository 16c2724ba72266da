"""Steady state of a virtual run: stretches that go on at their pace are passed by.

Once the pace of a stretch (jobs of one kind, lane and band) is known, it is taken to go on until
anything changes: half of the stretch is over, others join, a day is over, or something happens in a
lane that starts too seldom for its pace to be known. All that is under way in it is as it was, only
later. Where tokens are what a lane waits for, its pace is one of tokens: later jobs may be larger.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from heapq import heapify

from penstock.forecast.holds import Hold
from penstock.forecast.lines import JobGroup
from penstock.forecast.virtual_run import (
    CHECK_STARTS,
    HORIZON_SECONDS,
    Event,
    StretchKey,
    VirtualJob,
    VirtualRun,
)
from penstock.lanes.state import LaneState
from penstock.model.amounts import Amounts

KEPT_JOBS = 50
"""Those of a stretch that are played through to its end, at least."""
SHARE = 0.5
"""Of a stretch, which is passed by at once."""


@dataclass(slots=True)
class Stretch:
    """A stretch that goes on at its pace."""

    key: StretchKey
    groups: list[JobGroup]
    starts: float
    """A second."""
    weighed: bool
    """Its pace is one of tokens."""
    again: float
    """Starts of a job, on average."""

    @property
    def left(self) -> int:
        return sum(group.count for group in self.groups)

    def mean(self, part: int) -> float:
        """What is reserved by each of those that are left, on average."""
        whole = sum(group.amount[part] * group.count for group in self.groups)
        return whole / max(1, self.left)


def pass_by(run: VirtualRun) -> None:
    """Pass by what goes on unchanged, if that is worth it."""
    moving = [one for key in list(run.paces) if (one := _stretch(run, key)) is not None]
    keys = {one.key for one in moving}
    names = {lane.name for key in keys for lane in run.family(key[0])}
    lanes = [run.lanes[name] for name in names]
    if not moving or any(lane.slowdown > 1 or lane.limited for lane in lanes):
        return
    seconds = min(
        run.begun + HORIZON_SECONDS - run.now,
        *(_until_half(run, one) for one in moving),
        *(_until_day_ends(run, lane, moving) for lane in lanes),
        _until_event(run, keys, names),
    )
    if seconds * sum(one.starts for one in moving) < CHECK_STARTS:
        return
    before = run.now
    run.now += seconds
    _shift_events(run, keys, names, seconds)
    starts: dict[str, float] = dict.fromkeys(names, 0.0)
    used: dict[str, list[float]] = {name: [0.0] * len(Amounts()) for name in names}
    for one in moving:
        _take(run, one, seconds, starts, used)
        run.paces[one.key].shift(seconds)
    for lane in lanes:
        _shift_lane(lane, before, seconds, starts[lane.name], used[lane.name])


def _stretch(run: VirtualRun, key: StretchKey) -> Stretch | None:
    """None: its pace is not known."""
    lane, kind, band = key
    groups = run.lines[lane, kind].band(band)
    weighed = run.mostly_held(lane) is Hold.TOKENS and all(map(_weight, groups))
    rate = run.paces[key].of(run.now, weighed=weighed)
    if not rate:
        return None
    one = Stretch(key, groups, rate, weighed, 1 + run.durations[kind, lane].extra)
    if weighed and groups:
        one.starts = rate * one.left / sum(_weight(group) * group.count for group in groups)
    return one


def _weight(group: JobGroup) -> float:
    """As the pace of a stretch has it."""
    return group.amount.tokens or max(group.amount)


def _until_half(run: VirtualRun, one: Stretch) -> float:
    if not one.left:
        return math.inf  # the last of them run
    rate = one.starts / one.again
    kept = max(KEPT_JOBS, rate * run.paces[one.key].seconds / 2)
    return max(0.0, min(one.left - kept, one.left * SHARE) / rate)


def _until_day_ends(run: VirtualRun, lane: LaneState, moving: list[Stretch]) -> float:
    """Where anything is counted by day, until it is nearly used up, or the day is over."""
    own = [one for one in moving if lane in run.family(one.key[0])]
    starts = sum(one.starts for one in own)
    left = [math.inf]
    if lane.per_day is not None:
        left.append((lane.left_today(run.now) - KEPT_JOBS) / starts)
    if lane.amounts is not None:
        from penstock.lanes.amounts import left_of_day

        for part, rest in zip((0, 3), left_of_day(lane, run.now), strict=True):
            if rest is not None:
                spent = sum(
                    one.starts * one.mean(part) * run.use.get(one.key[:2], 1.0) for one in own
                )
                kept = KEPT_JOBS * spent / starts
                left.append((rest - kept) / spent if spent else math.inf)
    if len(left) == 1:
        return math.inf
    return max(0.0, min(*left, lane.day_after(run.now) - run.now - 1.0))


def _until_event(run: VirtualRun, keys: Collection[StretchKey], names: Collection[str]) -> float:
    """Until something happens beside what goes on."""
    first = math.inf
    for at, _, event in run.events:
        if isinstance(event, VirtualJob):
            passed = event.stretch in keys
        elif isinstance(event, JobGroup):
            passed = (event.lane, event.kind, event.band) in keys
        else:
            passed = event in names or run.looks.get(event) != at
        if not passed:
            first = min(first, at)
    return max(0.0, first - run.now)


def _shift_events(
    run: VirtualRun, keys: Collection[StretchKey], names: Collection[str], seconds: float
) -> None:
    """What is under way in these stretches ends later, and their lanes are looked at later."""
    shifted: list[Event] = []
    for at, number, event in run.events:
        if isinstance(event, VirtualJob):
            later = seconds if event.stretch in keys else 0.0
        elif isinstance(event, JobGroup):
            later = 0.0
        else:
            later = seconds if event in names and run.looks.get(event) == at else 0.0
        shifted.append((at + later, number, event))
        if later and isinstance(event, str):
            run.looks[event] = at + later
    heapify(shifted)
    run.events = shifted


def _take(
    run: VirtualRun,
    one: Stretch,
    seconds: float,
    starts: dict[str, float],
    used: dict[str, list[float]],
) -> None:
    """The jobs of a stretch that were run meanwhile."""
    lane, kind, band = one.key
    factor = run.use.get((lane, kind), 1.0)
    line = run.lines[lane, kind]
    wanted = int(one.starts / one.again * seconds)
    if one.weighed and one.left:
        mean = sum(_weight(group) * group.count for group in one.groups) / one.left
        taken = line.take_many(band, wanted * mean, _weight)
    else:
        taken = line.take_many(band, wanted)
    for group, many in taken:
        tally = run.tally(group)
        tally.jobs += many
        tally.first_at = run.now if tally.first_at is None else tally.first_at
        tally.last_at = tally.done_at = run.now
        runs = many * one.again
        tally.tokens += runs * group.amount.tokens * factor
        tally.cost += runs * group.amount.cost * factor
        for own in run.family(lane):
            starts[own.name] += runs
            spent = used[own.name]
            for part, amount in enumerate(group.amount):
                spent[part] += runs * amount * factor


def _shift_lane(
    lane: LaneState, before: float, seconds: float, starts: float, used: list[float]
) -> None:
    if lane.next_start:
        lane.next_start += seconds
    day = lane.day_of(before + seconds)
    lane.used_today = round(starts) + (lane.used_today if lane.day == day else 0)
    lane.day = day
    if lane.amounts is not None:
        from penstock.lanes import amounts

        amounts.pass_by(lane, before, seconds, Amounts(*map(round, used)))
