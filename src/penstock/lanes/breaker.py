"""What a lane learns from how requests end.

The breaker is shared by all processes. It opens when two different jobs (or a job and the
probe) find the dependency unavailable with no success between. While it is open one try is
made at a time, further and further apart, each with another job where there is one.
"""

from __future__ import annotations

import json
import random
from enum import Enum

from penstock.lanes.state import LaneState

_random = random.Random()  # noqa: S311 (jitter, not a secret)

RATE_LIMITED_SECONDS = 5.0
"""How long a 429 without Retry-After pauses the lane, at least."""
SLOWEST = 64.0
PRAISE = 20
"""Successes in a row after which a slowed lane goes twice as fast again."""
REFUSALS = 3
FOR_EVER = 1e12
REMEMBERED = 30
"""Jobs a lane remembers of an outage."""


class Fault(Enum):
    """Whose a failure is."""

    LANE = "lane"
    """The dependency's: the job has spent no attempt."""
    JOB = "job"


def succeeded(lane: LaneState) -> None:
    if lane.step == 1:
        # The very first try succeeded: it was no outage, those that failed are at fault.
        lane.doubted = _added(lane.doubted, json.loads(lane.tried))
    lane.step, lane.retry_at, lane.trial, lane.last_trial = 0, 0.0, None, None
    lane.trial_holder, lane.tried = None, "[]"
    lane.suspect = lane.probe_ok = None
    lane.limited = lane.refused = 0
    if lane.slowdown > 1:
        lane.praised += 1
        if lane.praised >= PRAISE:
            lane.slowdown, lane.praised = max(1.0, lane.slowdown / 2), 0


def unavailable(lane: LaneState, job: int, token: int, now: float) -> Fault:
    """A connection error, time-out or 5xx. When the breaker opens, `lane.suspect` still names
    the job that failed first: it too has spent no attempt."""
    if not lane.open and job in json.loads(lane.doubted):
        return Fault.JOB
    lane.tried = _added(lane.tried, [job] if lane.open or lane.suspect not in (None, job) else [])
    if lane.open:
        if job == lane.trial:
            _climb(lane, now)
            lane.trial, lane.trial_holder, lane.last_trial = None, None, job
        return Fault.LANE
    if lane.suspect is None or lane.suspect == job:
        lane.suspect, lane.suspect_token = job, token
        return Fault.JOB
    lane.tried = _added(lane.tried, [lane.suspect])
    _climb(lane, now)
    lane.last_trial = job
    return Fault.LANE


def probed(lane: LaneState, ok: bool, now: float) -> None:
    """A probe that fails makes a suspected outage one; one that turns from failing to passing
    brings the next real try forward. (One that passes all along says nothing: the service may
    accept connections and still be broken.)"""
    if not ok and not lane.open and lane.suspect is not None:
        lane.tried = _added(lane.tried, [lane.suspect])
        _climb(lane, now)
        lane.last_trial = lane.suspect
    if ok and lane.open and lane.probe_ok == 0:
        lane.retry_at = min(lane.retry_at, now)
    lane.probe_ok = int(ok)


def abandoned(lane: LaneState, job: int) -> None:
    """The request ended without telling anything (cancelled, released, its process died)."""
    if lane.trial == job:
        lane.trial = lane.trial_holder = None


def rate_limited(lane: LaneState, job: int, retry_after: float | None, now: float) -> None:
    """A 429: the lane pauses for everybody, and goes slower if it happens again."""
    abandoned(lane, job)
    # Requests that were under way together are told the same thing; that is no repetition.
    again = lane.blocked_until <= now
    lane.limited += again
    lane.praised = 0
    if lane.limited > 1 and again:
        lane.slowdown = min(SLOWEST, lane.slowdown * 2)
    pause = retry_after if retry_after is not None else max(RATE_LIMITED_SECONDS, lane.spacing)
    if now + pause > lane.blocked_until:
        lane.blocked_until, lane.blocked_why = now + pause, "rate limited"


def refused(lane: LaneState, job: int) -> Fault:
    """A 401 or 403. Three in a row mean the credentials: the lane is blocked until a person
    acts, and nothing dies of it."""
    abandoned(lane, job)
    lane.refused += 1
    if lane.refused < REFUSALS:
        return Fault.JOB
    lane.blocked_until, lane.blocked_why = FOR_EVER, "credentials"
    return Fault.LANE


def _added(jobs: str, more: list[int]) -> str:
    """A bounded list of jobs, as the row stores it."""
    known: list[int] = json.loads(jobs)
    return json.dumps([*(job for job in known if job not in more), *more][-REMEMBERED:])


def _climb(lane: LaneState, now: float) -> None:
    wait = min(lane.breaker_cap, lane.breaker_first * 2.0 ** min(lane.step, 60))
    lane.step += 1
    if lane.step > 1:
        lane.doubted = "[]"  # an outage after all
    lane.retry_at = now + wait * _random.uniform(0.8, 1.0)
