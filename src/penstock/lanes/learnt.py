"""Learns how many requests at a time a lane takes, where that is configured as `auto`.

It has more of them for as long as they are answered without errors and hardly later, fewer after
a 429 or when answers take longer. What was too many is remembered: the lane stays just below that,
and tries it again only after `TRY_AFTER` requests, so that few of them are refused. Where that goes
well it has more and more, up to the next refusal. Whoever ends a request, in any process, tells how
long it took; what was begun before the value was changed tells nothing of the new one.

Where no lane is `auto`, none of this is loaded. Lua has a twin of it
(`adapters/redis/lua/common/learnt.lua`); a test compares them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from penstock.lanes.state import LaneState
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import LearntLimit, News, Report

ROUND = 8
"""Requests that tell something of a value, at least; else as many as it is."""
BUSY = 0.8
"""The share of them that found the lane full, else nobody needs more."""
SLOW = 1.5
"""Times the usual time: then there are too many."""
SLOW_ROUNDS = 2
"""So many rounds in a row: one may be chance."""
NOISE = 1.25
"""Times the usual time, up to which it is taken for usual."""
ROOM = 1.2
"""Times what would be answered in the usual time: so many are left when they have become slow."""
HELPED = 0.8
"""Times the time before a cut: where it is more, the cut was no help."""
CUT = 0.7
"""Of what was known to be good, and is no more."""
TRY_AFTER = 250
"""Requests that are answered before what was too many is tried again."""
PAUSES = 20.0
"""Times the pause that a try cost: not before that is there another."""
FADES = 0.98
"""What the largest request counts for, with each that follows."""

AT_FIRST = "nothing is known yet"
MORE = "no errors, and answers as fast"
TRYING = "trying what was too many before"
REFUSED = "429"
SLOWER = "answers took longer"
NO_HELP = "answers were not faster with fewer"
LIMITS = "the configured bounds"


@dataclass(slots=True)
class LaneKnowledge:
    """A lane's knowledge; its row has the same as a list."""

    value: int
    """Requests at a time."""
    why: str = AT_FIRST
    since: float = 0.0
    """When it became that."""
    proven: int = 0
    """The largest value that went well since the last refusal; 0: none did."""
    ceiling: int = 0
    """The least that was too many; 0: not known."""
    step: int = 0
    """How much more it is the next time, where no ceiling is known."""
    passed: int = 0
    """Requests that were answered since it became that."""
    not_before: float = 0.0
    """Until then the ceiling is not tried."""
    usual: float = 0.0
    """Seconds that a request takes."""
    doubt: float = 0.0
    """Seconds that one took when it was cut for that; 0: it was not, the last time."""
    slow: int = 0
    """Rounds in a row that were slower than usual."""
    undo: int = 0
    """What it was before."""
    count: int = 0
    """Requests of this round, seconds they took, and how many found the lane full."""
    seconds: float = 0.0
    full: int = 0
    told: int = 0
    """Requests that may start until `told_until`, as the provider said at `told_at`."""
    told_at: float = 0.0
    told_until: float = 0.0
    size: float = 0.0
    """Tokens of a large request."""


def text_of(config: LaneConfig) -> str:
    """The bounds as the lane's row keeps them."""
    return json.dumps([config.auto_min, config.auto_max])


def bounds(lane: LaneState) -> tuple[int, int]:
    """The least and the most requests at a time."""
    assert lane.auto is not None
    least, most = json.loads(lane.auto)
    return least, most


def gives_way(lane: LaneState) -> bool:
    """Whether a 429 is answered with fewer requests at a time, rather than slower starts."""
    return lane.auto is not None and lane.max_parallel > bounds(lane)[0]


def read(lane: LaneState) -> LaneKnowledge:
    if lane.learnt:
        return LaneKnowledge(*json.loads(lane.learnt))
    return LaneKnowledge(lane.max_parallel)


def hear(lane: LaneState, report: Report, now: float) -> None:
    """Apply what the end of a request tells of the lane. Not while an operator has limited it."""
    if lane.auto is None or '"max_parallel"' in (lane.limits or ""):
        return
    least, most = bounds(lane)
    known = read(lane)
    if not least <= known.value <= most:
        _become(known, max(least, min(known.value, most)), LIMITS, now)
        known.proven = known.ceiling = 0
    began = now - (report.took or 0.0)
    if report.left is not None:
        _obey(lane, known, report.left, began, now)
    match report.news:
        case News.SUCCESS:
            if report.took is not None and began >= known.since:
                _answered(known, report.took, lane.in_flight, least, most, now)
        case News.RATE_LIMITED:
            pause = report.resets_after if report.retry_after is None else report.retry_after
            known.not_before = max(known.not_before, now + PAUSES * (pause or 0.0))
            if began > known.since:
                _too_many(known, least, now)
        case News.UNAVAILABLE:  # a round with an error tells nothing, but that it was none to go by
            known.count, known.seconds, known.full, known.passed = 0, 0.0, 0, 0
    _write(lane, known)
    lane.learnt_parallel = known.value
    if known.told_until > now:
        lane.learnt_parallel = max(1, min(known.value, known.told))
    lane.max_parallel = lane.learnt_parallel


def shown(lane: LaneState, now: float) -> LearntLimit:
    known, (least, most) = read(lane), bounds(lane)
    value = max(least, min(known.value, most))
    told = known.told if known.told_until > now and known.told < value else None
    return LearntLimit(value, known.why, known.since, least, most, told)


def set_back(lane: LaneState, ahead: float, now: float) -> None:
    """The clock was set back by `ahead`: what is ahead of it now is of now."""
    known = read(lane)
    known.since, known.told_at = min(known.since, now), min(known.told_at, now)
    known.not_before, known.told_until = known.not_before - ahead, known.told_until - ahead
    _write(lane, known)


def _write(lane: LaneState, known: LaneKnowledge) -> None:
    lane.learnt = json.dumps(astuple(known), separators=(",", ":"))


def _become(known: LaneKnowledge, value: int, why: str, now: float) -> None:
    known.value, known.why, known.since = value, why, now
    known.passed, known.count, known.seconds, known.full, known.slow = 0, 0, 0.0, 0, 0


def _answered(
    known: LaneKnowledge, took: float, in_flight: int, least: int, most: int, now: float
) -> None:
    """Count it; at the end of a round make something of that."""
    known.passed += 1
    known.count += 1
    known.seconds += took
    known.full += in_flight >= known.value
    if known.count < max(ROUND, known.value):
        return
    mean = known.seconds / known.count
    busy = known.full >= BUSY * known.count
    known.count, known.seconds, known.full = 0, 0.0, 0
    if known.usual == 0:
        known.usual = mean
    if known.doubt > 0:
        no_help = mean > HELPED * known.doubt
        known.doubt = 0.0
        if no_help:
            # It has become slower by itself: that is usual now.
            known.usual = mean
            _become(known, min(most, known.undo), NO_HELP, now)
            known.ceiling = 0
            return
    if mean <= SLOW * known.usual:
        known.slow = 0
    elif known.value > least:
        known.slow += 1
        if known.slow < SLOW_ROUNDS:
            return
        fewer = math.floor(known.value * max(0.5, ROOM * known.usual / mean))
        known.doubt, known.undo, known.ceiling = mean, known.value, known.value
        known.proven = 0
        _become(known, max(least, min(fewer, known.value - 1)), SLOWER, now)
        return
    if mean < NOISE * known.usual:
        known.usual += (mean - known.usual) * (0.2 if mean < known.usual else 0.05)
    if busy:
        _more(known, most, now)


def _more(known: LaneKnowledge, most: int, now: float) -> None:
    """A round went well, and the lane was full."""
    value = known.value
    known.proven = max(known.proven, value)
    if known.ceiling and value >= known.ceiling:
        known.ceiling, known.step = 0, 1
    why = MORE
    if not known.ceiling:
        step = known.step or math.ceil(value / 2)
        known.step = min(2 * step, math.ceil(value / 2))
        value += step
    elif value + 1 < known.ceiling:
        value += (known.ceiling - value) // 2
    elif known.passed >= TRY_AFTER and now >= known.not_before:
        value, why = known.ceiling, TRYING
    if min(value, most) > known.value:
        _become(known, min(value, most), why, now)


def _too_many(known: LaneKnowledge, least: int, now: float) -> None:
    """A request that was begun under this value was answered 429."""
    known.ceiling, known.doubt, known.step = known.value, 0.0, 0
    if known.proven and known.proven < known.value:
        value = known.proven
    else:
        known.proven = 0
        value = math.floor(known.value * CUT)
    _become(known, max(least, min(value, known.value - 1)), REFUSED, now)


def _obey(
    lane: LaneState, known: LaneKnowledge, left: Sequence[float], began: float, now: float
) -> None:
    """Have no more requests under way than the provider says are left, and none while that is
    none. What was said to a request that was begun before the last was heard may be older."""
    requests, requests_in, tokens, tokens_in, size = left
    known.size = max(size, known.size * FADES)
    room, until = math.inf, 0.0
    if requests >= 0:
        room, until = requests, now + requests_in
    if tokens >= 0 and (known.size > 0 or tokens == 0):
        has = math.floor(tokens / known.size) if known.size > 0 else 0
        if has < room:
            room, until = has, now + tokens_in
    if room == math.inf:
        return
    if began < known.told_at and known.told_until > now and room >= known.told:
        return
    known.told, known.told_at, known.told_until = int(min(room, 1e9)), now, until
    if room < 1 and until > lane.blocked_until:
        lane.blocked_until, lane.blocked_why = until, "rate limited"
