"""The circuit breaker of a lane: learns from the outcomes of requests.

The breaker is shared by all processes. It opens when two different jobs (or a job and the
probe) find the dependency unavailable with no success between. While it is open one try is
made at a time, further and further apart, each with another job where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from penstock import runtime
from penstock.lanes.state import DAY, LaneState

RATE_LIMITED_SECONDS = 5.0
"""How long a 429 without Retry-After pauses the lane, at least."""
SLOWEST = 64.0
PRAISE = 20
"""Successes in a row after which a slowed lane goes twice as fast again."""
REFUSALS = 3
PARDONED = "[[0, 0], [-1, 0]]"
"""As if two others had just been refused: one more refusal blocks the lane again."""
CREDENTIALS = "credentials"
SUSPICION_SECONDS = 300.0
"""Two failures further apart than this do not make an outage."""
DAILY_RESET_SECONDS = 3600.0
"""A reset that a provider announces further ahead than this is that of its day."""
FOR_EVER = 1e12
REMEMBERED = 30
"""Jobs a lane remembers of an outage."""


class Fault(Enum):
    """The party at fault for a failure."""

    LANE = "lane"
    """The dependency's: the job has spent no attempt."""
    JOB = "job"


class Spared(NamedTuple):
    """Failures of a job that turn out to be its lane's: their attempts are to be returned."""

    job: int
    token: int
    """Of the last run that failed. While that goes on, it is judged when it ends."""
    failures: int
    """Runs that failed."""


class FailureVerdict(NamedTuple):
    """A lane's verdict on a failure."""

    fault: Fault
    spared: Sequence[Spared] = ()
    """Earlier failures that turn out to be the lane's too."""


def set_back(lane: LaneState, now: float) -> bool:
    """Whether the clock was set back since the lane's row was written. Then its times are as far
    ahead of now as they were of then, which is no sooner than they were meant: what was started
    while the clock was ahead still counts. A day that has not come yet blocks until tomorrow at
    most: what was used of today is not known any more."""
    ahead = lane.touched_at - now
    if ahead <= 0:
        return False
    lane.next_start -= ahead
    lane.retry_at -= ahead
    lane.suspect_at -= ahead
    lane.asked_until -= ahead
    if lane.blocked_until < FOR_EVER:
        lane.blocked_until -= ahead
    lane.day = min(lane.day, lane.day_of(now) + 1)
    if lane.used is not None:
        from penstock.lanes import amounts

        amounts.set_back(lane, now)
    if lane.learnt:
        from penstock.lanes import learnt

        learnt.set_back(lane, ahead, now)
    lane.touched_at = now
    return True


def succeeded(lane: LaneState) -> None:
    if lane.step == 1:
        # The very first try succeeded: it was no outage, those that failed are at fault.
        lane.doubted = _added(lane.doubted, json.loads(lane.tried))
    lane.step, lane.retry_at, lane.trial, lane.last_trial = 0, 0.0, None, None
    lane.trial_holder, lane.tried = None, "[]"
    lane.suspect, lane.suspect_failures, lane.probe_ok = None, 0, None
    lane.refusers = "[]"
    if lane.slowdown > 1 or lane.limited:
        lane.praised += 1
        if lane.praised >= PRAISE:
            lane.slowdown, lane.praised, lane.limited = max(1.0, lane.slowdown / 2), 0, 0


def unavailable(lane: LaneState, job: int, token: int, now: float) -> FailureVerdict:
    """A connection error, time-out or 5xx. When the breaker opens, the job that failed first
    has spent no attempt either, however often it has run meanwhile."""
    if lane.open:
        lane.tried = _added(lane.tried, [job])
        if job == lane.trial:
            _climb(lane, now)
            lane.trial, lane.trial_holder, lane.last_trial = None, None, job
        return FailureVerdict(Fault.LANE)
    if job in json.loads(lane.doubted):
        return FailureVerdict(Fault.JOB)
    if not suspected(lane, now):
        lane.suspect, lane.suspect_token, lane.suspect_failures = None, 0, 0
    if lane.suspect is None or lane.suspect == job:
        # A run may fail in several requests.
        lane.suspect_failures += lane.suspect is None or lane.suspect_token != token
        lane.suspect, lane.suspect_token, lane.suspect_at = job, token, now
        return FailureVerdict(Fault.JOB)
    lane.tried = _added(lane.tried, [job])
    return FailureVerdict(Fault.LANE, _open(lane, job, now))


def suspected(lane: LaneState, now: float) -> bool:
    """Whether one more failure makes an outage of what one job saw."""
    return lane.suspect is not None and lane.suspect_at + SUSPICION_SECONDS > now


def _open(lane: LaneState, last: int, now: float) -> list[Spared]:
    """Open the breaker; the job that was under suspicion is not at fault."""
    assert lane.suspect is not None
    # At least the one that made it so: the version before does not count them.
    spared = [Spared(lane.suspect, lane.suspect_token, max(1, lane.suspect_failures))]
    lane.tried = _added(lane.tried, [lane.suspect])
    lane.suspect, lane.suspect_failures, lane.last_trial = None, 0, last
    _climb(lane, now)
    return spared


def probed(lane: LaneState, ok: bool, now: float) -> FailureVerdict:
    """A probe that fails makes a suspected outage one; one that turns from failing to passing
    brings the next real try forward. (One that passes all along says nothing: the service may
    accept connections and still be broken.)"""
    spared: Sequence[Spared] = ()
    if not ok and not lane.open and lane.suspect is not None:
        spared = _open(lane, lane.suspect, now)
    if ok and lane.open and lane.probe_ok == 0:
        lane.retry_at = min(lane.retry_at, now)
    lane.probe_ok = int(ok)
    return FailureVerdict(Fault.LANE, spared)


def abandoned(lane: LaneState, job: int) -> None:
    """The request ended without telling anything (cancelled, released, its process died)."""
    if lane.trial == job:
        lane.trial = lane.trial_holder = None


def rate_limited(
    lane: LaneState,
    job: int,
    retry_after: float | None,
    resets_after: float | None,
    now: float,
    *,
    gives_way: bool = False,
) -> FailureVerdict:
    """A 429: the lane pauses for everybody, and goes slower if it happens again. `resets_after`
    is when the provider says that its count starts anew. Where it `gives_way`, having fewer
    requests at a time instead, it pauses only for as long as it is told to."""
    abandoned(lane, job)
    # Requests that were under way together are told the same thing; that is no repetition.
    again = lane.blocked_until <= now
    lane.limited += again and not gives_way
    lane.praised = 0
    if lane.limited > 1 and again and not gives_way:
        lane.slowdown = min(SLOWEST, lane.slowdown * 2)
    if retry_after is not None:
        pause = retry_after
    elif resets_after is not None:
        pause = resets_after
    else:
        pause = 0.0 if gives_way else max(RATE_LIMITED_SECONDS, lane.spacing)
    if pause > 0 and now + pause > lane.blocked_until:
        lane.blocked_until, lane.blocked_why = now + pause, "rate limited"
    if lane.per_day is not None and resets_after and resets_after > DAILY_RESET_SECONDS:
        used_today = lane.used_today if lane.day == lane.day_of(now) else 0
        lane.day_offset = (now + resets_after) % DAY
        lane.day, lane.used_today = lane.day_of(now), used_today
    return FailureVerdict(Fault.LANE)


def refused(lane: LaneState, job: int, token: int) -> FailureVerdict:
    """A 401 or 403. Three jobs in a row mean the credentials: the lane is blocked until a
    person acts, and nothing dies of it. (One job alone may have asked for what is forbidden.)"""
    if not lane.credentials:
        succeeded(lane)  # it was answered
        return FailureVerdict(Fault.JOB)
    abandoned(lane, job)
    if lane.blocked_why == CREDENTIALS and lane.blocked_until == FOR_EVER:
        return FailureVerdict(Fault.LANE)
    # Runs, not jobs with a count: processes of the version before read pairs.
    refusals: list[tuple[int, int]] = [
        (seq, of) for seq, of in json.loads(lane.refusers) if (seq, of) != (job, token)
    ]
    others: dict[int, Spared] = {}
    for seq, of in refusals:
        if seq != job:
            before = others.get(seq)
            others[seq] = Spared(seq, of, 1 if before is None else before.failures + 1)
    if len(others) + 1 < REFUSALS:
        lane.refusers = json.dumps([*refusals, (job, token)])
        return FailureVerdict(Fault.JOB)
    lane.blocked_until, lane.blocked_why, lane.refusers = FOR_EVER, CREDENTIALS, "[]"
    return FailureVerdict(Fault.LANE, list(others.values()))


def _added(jobs: str, more: list[int]) -> str:
    """A bounded list of jobs, as the row stores it."""
    known: list[int] = json.loads(jobs)
    return json.dumps([*(job for job in known if job not in more), *more][-REMEMBERED:])


def _climb(lane: LaneState, now: float) -> None:
    wait = min(lane.breaker_cap, lane.breaker_first * 2.0 ** min(lane.step, 60))
    lane.step += 1
    if lane.step > 1:
        lane.doubted = "[]"  # an outage after all
    lane.retry_at = now + wait * runtime.uniform(0.8, 1.0)
