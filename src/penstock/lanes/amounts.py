"""Room for amounts in lanes: tokens of a window, tokens and money of a day.

A provider that counts tokens counts each request when it arrives, and tells its use when it is
answered. So a request reserves what it may use at most, and is settled with what it has used. The
lane's row keeps what is reserved or used by parts of the window: a `sliding` one has room once
parts have left it, a `bucket` is refilled all the time. A part leaves as a whole, when its last
moment does, and `SPARE` later than the provider would let it go, because requests arrive late.

Where nothing is configured of amounts, none of this is loaded. Lua has a twin of it
(`adapters/redis/lua/common/amounts.lua`); a test compares them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from penstock.lanes import usual_amounts
from penstock.lanes.limits import AHEAD_SECONDS, grant
from penstock.lanes.state import DAY, LaneState
from penstock.model.amounts import MICRO, NOTHING, Amounts
from penstock.model.lane import LEAST_TOLERANCE, SPARE, LaneConfig
from penstock.ports.queue import Outcome, Settlement

PARTS = 60
"""Of a window."""
WINDOWED = 3
"""Of the figures of an amount those that windows count: tokens, input, output."""
LOOK_SECONDS = 1.0
LEAST_LOOK = 0.05
"""Refunds make room sooner than time does, and tell only who settles: for jobs that wait it is
looked again after a part of the window, which is taken to be at least and at most so long."""
OPEN_LEAST = 256
OPEN_MOST = 4096
"""Requests under way that a lane keeps apart, twice its `max_parallel` within these bounds: of
older ones what was reserved stands."""
OVERTAKEN = 0.5
"""Of a window: how long a request that waits for room may be overtaken by those that need less."""
GONE_SECONDS = 2.0
"""Who has not asked again for so long does not wait any more."""
WAITING_MOST = 8
"""Amounts that are known to be waited for."""
NONE = "[]"
"""Nothing is used."""
WINDOW_WHY = "its tokens"
DAY_WHY = "its daily amount"


class AmountLimits(NamedTuple):
    """As configured; `None` is no limit."""

    interval: float
    window: Sequence[int | None]
    """Tokens, input tokens, output tokens of an interval."""
    day: Sequence[int | None]
    """Tokens, and millionths of money."""
    refills: bool
    alone: bool
    """What is larger than all of it is let through where nothing else is; else refused."""

    @property
    def part(self) -> float:
        """Seconds."""
        return self.interval / PARTS


class Booking(NamedTuple):
    """The reservation of a request, and the ref it is settled by."""

    ref: int
    token: int
    """Of a job; 0 of a permit, whose ref nothing else has."""
    amount: Amounts
    refusal: str | None = None
    """Why it can never start."""
    kind: str | None = None
    """Of a request that said nothing: the amount is what is usual of its kind. None: it did."""


class AmountRoom(NamedTuple):
    """When there is room for an amount (infinite: never), and which lane, and why, is the last."""

    at: float
    lane: str
    why: str


@dataclass(slots=True)
class Use:
    """Amounts reserved or used in a lane; its row has the same as a list."""

    interval: float = 0.0
    day: int = 0
    today: list[int] = field(default_factory=lambda: [0, 0])
    """Of that day."""
    base: list[float] = field(default_factory=list)
    """Where it refills: a part's number, and the levels at its beginning."""
    parts: list[list[int]] = field(default_factory=list)
    """[number, tokens, input, output] of each that has any, in order."""
    open: list[list[Any]] = field(default_factory=list)
    """[ref, token, start, tokens, input, output, cost] of each request that is not settled, and the
    kind of those that said nothing of their amount."""
    usual: list[list[Any]] = field(default_factory=list)
    """What is usual of each kind; see `usual_amounts`."""
    waiting: list[list[float]] = field(default_factory=list)
    """[since, asked again at, tokens, input, output, cost] of each amount that is waited for, in
    order."""
    changed: bool = False
    """Since it was read, or written down."""

    def text(self) -> str:
        """As the lane's row keeps it."""
        self.changed = False
        window = [self.interval, self.day, self.today, self.base, self.parts]
        return json.dumps([*window, self.open, self.usual, self.waiting], separators=(",", ":"))


def text_of(config: LaneConfig) -> str:
    """The limits as the lane's row keeps them."""
    money = config.cost_per_day
    said = {
        "interval": config.interval_seconds,
        "tokens": config.tokens_per_interval,
        "input": config.input_tokens_per_interval,
        "output": config.output_tokens_per_interval,
        "tokens_day": config.tokens_per_day,
        "cost_day": None if money is None else math.floor(money * MICRO + 0.5),
        "refills": config.window == "bucket" or None,
        "alone": config.oversized == "alone" or None,
    }
    return json.dumps({name: value for name, value in said.items() if value is not None})


@lru_cache(maxsize=1024)
def limits_in(text: str) -> AmountLimits:
    said = json.loads(text)
    return AmountLimits(
        float(said.get("interval", 0.0)),
        (said.get("tokens"), said.get("input"), said.get("output")),
        (said.get("tokens_day"), said.get("cost_day")),
        "refills" in said,
        "alone" in said,
    )


def booking(
    lanes: Sequence[LaneState], ref: int, token: int, amount: Amounts | None, kind: str
) -> Booking:
    """What a request of this kind reserves: its amount or, if it says nothing of that, what is
    usual of its kind, as far as the lanes have that much."""
    if amount is not None:
        return Booking(ref, token, amount, refusal(lanes, amount))
    lane = next(one for one in lanes if one.amounts is not None)
    found = list(usual_amounts.usual(_use(lane).usual, kind) or NOTHING)
    for one in lanes:
        if one.amounts is not None:
            limits = limits_in(one.amounts)
            for n, limit in enumerate(limits.window):
                found[n] = found[n] if limit is None else min(found[n], _usable(limits, limit))
            for n, limit in zip((0, 3), limits.day, strict=True):
                found[n] = found[n] if limit is None else min(found[n], limit)
    return Booking(ref, token, Amounts(*found), None, kind)


def usual_of(lane: LaneState) -> dict[str, Amounts]:
    """What is usual of each kind that a lane has learnt of."""
    usual = _use(lane).usual
    return {kind: usual_amounts.usual(usual, kind) or NOTHING for kind, *_ in usual}


def tolerance(lanes: Sequence[LaneState]) -> float:
    """How late a start may be: also where an operator has set another pace, less than what the
    parts of a window leave it."""
    found = min(one.tolerance for one in lanes)
    counted = [limits_in(one.amounts) for one in lanes if one.amounts is not None]
    windows = [limits.interval for limits in counted if limits.interval]
    return min([found, *(max(LEAST_TOLERANCE, one * (SPARE - 1) / 2) for one in windows)])


def refusal(lanes: Sequence[LaneState], amount: Amounts) -> str | None:
    """Why a request of this size can never start; None: it can."""
    for lane in lanes:
        if lane.amounts is not None:
            limits = limits_in(lane.amounts)
            for limit, wanted, what in _limited(limits, amount):
                if wanted > limit and not limits.alone:
                    return f"{wanted:d} {what} are more than lane {lane.name} has, {limit:d}"
    return None


def _limited(limits: AmountLimits, amount: Amounts) -> list[tuple[int, int, str]]:
    """Every limit, what an amount wants of it, and what it is of."""
    names = ("tokens in a window", "input tokens in a window", "output tokens in a window")
    found = [
        (_usable(limits, limit), amount[n], names[n])
        for n, limit in enumerate(limits.window)
        if limit is not None
    ]
    tokens, cost = limits.day
    if tokens is not None:
        found.append((tokens, amount.tokens, "tokens in a day"))
    if cost is not None:
        found.append((cost, amount.cost, "millionths of money in a day"))
    return found


def _usable(limits: AmountLimits, limit: int) -> int:
    """Of a bucket a little less than it holds: what a late request finds refilled by then."""
    return math.floor(limit * (2 - SPARE)) if limits.refills else limit


def _wanted(wanted: int, limit: int, alone: bool) -> int:
    """The room that a request needs. What is too large needs all of it; what says nothing of itself
    needs some."""
    return max(1, min(wanted, limit) if alone else wanted)


def room(lanes: Sequence[LaneState], amount: Amounts, at: float) -> AmountRoom:
    """When, from `at` on, all of `lanes` have room for an amount."""
    found = AmountRoom(at, "", "")
    for lane in lanes:
        if lane.amounts is None:
            continue
        limits, use = _read(lane, at)
        before = _before(limits, use, amount, at)
        for n, limit in enumerate(limits.window):
            if limit is not None:
                usable = _usable(limits, limit)
                wanted = _wanted(amount[n], usable, limits.alone)
                if before:
                    wanted = max(wanted, min(wanted + int(before[n]), usable))
                when = (_refilled if limits.refills else _left)(limits, use, n, usable, wanted, at)
                if when > found.at:
                    found = AmountRoom(when, lane.name, WINDOW_WHY)
        today = lane.day_of(at)
        for n, limit in enumerate(limits.day):
            if limit is not None:
                used = use.today[n] if use.day >= today else 0
                wanted = _wanted((amount.tokens, amount.cost)[n], limit, limits.alone)
                when = at
                if wanted > limit:
                    when = math.inf
                elif used + wanted > limit:
                    when = (max(today, use.day) + 1) * DAY + lane.day_offset
                if when > found.at:
                    found = AmountRoom(when, lane.name, DAY_WHY)
    return found


def _before(limits: AmountLimits, use: Use, amount: Amounts, at: float) -> Sequence[float]:
    """The amount for which room is kept, too, before this one is let by: that of who has waited
    longest, if that is long, unless it is this one."""
    first = next((one for one in use.waiting if one[1] + GONE_SECONDS >= at), None)
    if first is None or first[2:] == list(amount):
        return ()
    return first[2:] if first[0] + OVERTAKEN * limits.interval <= at else ()


def next_chance(lanes: Sequence[LaneState], amount: Amounts, at: float, now: float) -> float:
    """When to look for room again for a job that could start at `at` if there were any."""
    counted = [limits_in(lane.amounts) for lane in lanes if lane.amounts is not None]
    parts = [limits.part for limits in counted if limits.interval]
    pause = max(LEAST_LOOK, min([LOOK_SECONDS, *parts]))
    return min(room(lanes, amount, at).at - AHEAD_SECONDS, now + pause)


def _left(limits: AmountLimits, use: Use, meter: int, limit: int, wanted: int, at: float) -> float:
    """When enough of a sliding window has left it."""
    if wanted > limit:
        return math.inf
    total = sum(part[1 + meter] for part in use.parts)
    for part in use.parts:
        if total + wanted <= limit:
            break
        at = max(at, (part[0] + 1) * limits.part + limits.interval * SPARE)
        total -= part[1 + meter]
    return at


def _refilled(
    limits: AmountLimits, use: Use, meter: int, limit: int, wanted: int, at: float
) -> float:
    """When a bucket has enough."""
    if wanted > limit:
        return math.inf
    if _level(limits, use, meter, limit, at) >= wanted:
        return at
    if use.parts:
        at = max(at, (use.parts[-1][0] + 1) * limits.part)
    level = _level(limits, use, meter, limit, at)
    given = limits.window[meter]
    assert given is not None
    return at if level >= wanted else at + (wanted - level) * limits.interval / given


def _level(limits: AmountLimits, use: Use, meter: int, limit: int, at: float) -> float:
    """What a bucket has at least: each part as if all of it was used in its last moment, after as
    much of the refill as the bucket can take."""
    given = limits.window[meter]
    assert given is not None
    rate = given / limits.interval
    level, since = float(limit), at
    if use.base:
        level, since = min(level, use.base[1 + meter]), use.base[0] * limits.part
    elif use.parts:
        since = use.parts[0][0] * limits.part
    for part in use.parts:
        end = max(since, min((part[0] + 1) * limits.part, at))
        level = min(limit, level + rate * (end - since)) - part[1 + meter]
        since = end
    return min(limit, level + rate * max(0.0, at - since))


def book(
    lanes: Sequence[LaneState], booking: Booking, at: float, latest: float, slack: float = 0.0
) -> float | None:
    """Reserve an amount in all of `lanes`, from `at` on and until `latest` at the latest: the
    start. None: there is no room until then. It may come `slack` seconds later, so what it reserves
    is there from now until a window after that."""
    found = room(lanes, booking.amount, at)
    start = found.at
    if start > latest:
        for lane in lanes:
            if lane.name == found.lane and found.why == WINDOW_WHY:
                _wait(lane, booking.amount, at)
        return None
    kind = booking.kind
    for lane in lanes:
        if lane.amounts is not None:
            _reserve(lane, booking, start + slack, kind)
            kind = None  # it is learnt once
        elif lane.used is None:
            lane.used = NONE  # that of its parent is to be settled
    return start


def _wait(lane: LaneState, amount: Amounts, now: float) -> None:
    """Somebody waits for room. Who has waited longest is overtaken only for a while."""
    _, use = _read(lane, now)
    use.waiting = [one for one in use.waiting if one[1] + GONE_SECONDS >= now]
    known = next((one for one in use.waiting if one[2:] == list(amount)), None)
    if known is not None:
        if known[1] + GONE_SECONDS / 4 >= now:
            return
        known[1] = now
    elif len(use.waiting) < WAITING_MOST:
        use.waiting.append([now, now, *amount])
    else:
        return
    _write(lane, use)


def _reserve(lane: LaneState, booking: Booking, start: float, kind: str | None) -> None:
    limits, use = _read(lane, start)
    use.waiting = [one for one in use.waiting if one[2:] != list(booking.amount)]
    if limits.interval:
        _add(use, math.floor(start / limits.part), booking.amount)
        _forget(limits, use, math.floor(start / limits.part))
    _spend(lane, use, start, booking.amount)
    kept = [one for one in use.open if _matters(lane, limits, one[2], start)]
    told = [] if kind is None else [kind]
    most = max(OPEN_LEAST, min(2 * lane.max_parallel, OPEN_MOST))
    use.open = [*kept, [booking.ref, booking.token, start, *booking.amount, *told]][-most:]
    _write(lane, use)


def _matters(lane: LaneState, limits: AmountLimits, then: float, now: float) -> bool:
    """Whether what was reserved then can still be given back."""
    if limits.interval and then + 2 * limits.interval > now:
        return True
    return limits.day != (None, None) and lane.day_of(then) >= lane.day_of(now)


def settle(
    lanes: Sequence[LaneState], ref: int, token: int, used: Amounts | None, now: float
) -> bool:
    """A request has ended, and has used so much; None: what was reserved stands. Less is given
    back where it was reserved: in its part of the window, and its day, and nowhere if they are
    over. More is used now, when it is known. What is settled again changes nothing. Whether
    anything was given back."""
    refunded = False
    for lane in lanes:
        if lane.amounts is None:
            continue
        limits, use = _read(lane, now)
        found = next((one for one in use.open if one[0] == ref and one[1] == token), None)
        if found is None:
            continue
        use.open.remove(found)
        if used is not None:
            start, reserved = found[2], found[3:7]
            less = [min(0, int(u - r)) for u, r in zip(used, reserved, strict=True)]
            more = [max(0, int(u - r)) for u, r in zip(used, reserved, strict=True)]
            refunded = refunded or any(less)
            if limits.interval:
                _add(use, math.floor(start / limits.part), less, there=True)
                if any(more):
                    _add(use, math.floor(now / limits.part), more)
            if use.day == lane.day_of(start):
                use.today = [use.today[0] + less[0], use.today[1] + less[3]]
            _spend(lane, use, now, more)
            for kind in found[7:]:
                usual_amounts.learn(use.usual, kind, used)
        _write(lane, use)
    return refunded


def starts(
    lanes: list[LaneState],
    resumes: Sequence[bool],
    bookings: Sequence[Booking],
    now: float,
    slack: float = 0.0,
) -> list[float]:
    """As `limits.starts`, for jobs that reserve amounts. One that is refused takes only its slot:
    it is started to fail."""
    found: list[float] = []
    for charged, booking in zip(resumes, bookings, strict=True):
        if charged or booking.refusal is not None:
            for lane in lanes:
                lane.in_flight += 1
            found.append(now)
        elif start := grant(lanes, 1, now, slack=slack, booking=booking):
            found += start
        else:
            break
    return found


def used_by(settlement: Settlement) -> Amounts | None:
    """What a job has used of what its start reserved, as far as its end tells: nothing where it was
    not run."""
    unused = settlement.outcome is Outcome.HANDED_BACK and not settlement.started_at
    return NOTHING if unused else None


def _add(use: Use, number: int, amount: Sequence[int], *, there: bool = False) -> None:
    """Add to a part of the window; with `there` only if it is still kept."""
    place = len(use.parts)
    while place and use.parts[place - 1][0] > number:
        place -= 1
    if place and use.parts[place - 1][0] == number:
        part = use.parts[place - 1]
        for n in range(WINDOWED):
            part[1 + n] += amount[n]
    elif not there:
        use.parts.insert(place, [number, *amount[:WINDOWED]])


def _forget(limits: AmountLimits, use: Use, number: int) -> None:
    """Parts that have left the window of the part of this number; of a bucket they become its
    base."""
    kept = number - math.ceil(PARTS * SPARE) - 1
    if limits.refills:
        if not use.base:
            full = [0 if one is None else _usable(limits, one) for one in limits.window]
            use.base = [use.parts[0][0], *full]
        while use.parts and use.parts[0][0] < kept:
            gone = Use(base=use.base, parts=[use.parts.pop(0)])
            end = (gone.parts[0][0] + 1) * limits.part
            levels = [
                0.0 if one is None else _level(limits, gone, n, _usable(limits, one), end)
                for n, one in enumerate(limits.window)
            ]
            use.base = [gone.parts[0][0] + 1, *levels]
        return
    use.base = []
    while use.parts and use.parts[0][0] < kept:
        use.parts.pop(0)


def _spend(lane: LaneState, use: Use, at: float, amount: Sequence[int]) -> None:
    """Of the day that `at` is in; of a later one where that has begun."""
    day = lane.day_of(at)
    if day > use.day:
        use.day, use.today = day, [0, 0]
    use.today = [use.today[0] + amount[0], use.today[1] + amount[3]]


def set_back(lane: LaneState, now: float) -> None:
    """The clock was set back: what is ahead of it now is of now."""
    if lane.amounts is None or not lane.used:
        return
    limits, use = _read(lane, now)
    if limits.interval:
        number = math.floor(now / limits.part)
        _gather(use, number, [part for part in use.parts if part[0] > number])
        if use.base and use.base[0] > number:
            use.base[0] = number
    for one in use.open:
        one[2] = min(one[2], now)
    use.waiting = []
    use.day = min(use.day, lane.day_of(now))
    _write(lane, use)


def _gather(use: Use, number: int, parts: Sequence[list[int]]) -> None:
    """Make one part of some."""
    use.parts = [part for part in use.parts if part not in parts]
    for part in parts:
        _add(use, number, part[1:])


def _read(lane: LaneState, now: float) -> tuple[AmountLimits, Use]:
    """The limits, and what is used of them. Where the interval was another, all of it is of now."""
    assert lane.amounts is not None
    limits = limits_in(lane.amounts)
    use = _use(lane)
    if use.interval != limits.interval:
        use.interval, use.base = limits.interval, []
        parts, use.parts = use.parts, []
        if limits.interval:
            _gather(use, math.floor(now / limits.part), parts)
    return limits, use


def _use(lane: LaneState) -> Use:
    """Read once, however many ask while the row is held."""
    if lane.use is None:
        assert lane.amounts is not None
        fresh = Use(limits_in(lane.amounts).interval)
        lane.use = Use(*json.loads(lane.used)) if lane.used else fresh
    found: Use = lane.use
    return found


def _write(lane: LaneState, use: Use) -> None:
    use.changed = True
    lane.used = lane.used or NONE  # until it is written down


def used_now(lane: LaneState, now: float) -> Amounts:
    """What of its windows, and of money today, is reserved or used."""
    if lane.amounts is None or not lane.used:
        return NOTHING
    limits, use = _read(lane, now)
    gone = now - limits.interval * SPARE
    parts = [part for part in use.parts if (part[0] + 1) * limits.part > gone]
    tokens, sent, said = (sum(part[1 + n] for part in parts) for n in range(WINDOWED))
    cost = use.today[1] if use.day >= lane.day_of(now) else 0
    return Amounts(tokens, sent, said, cost)


def pass_by(lane: LaneState, now: float, seconds: float, used: Amounts) -> None:
    """So much time has passed in which the lane was used as just before, and so much in all: its
    window has moved along, unchanged."""
    if lane.amounts is None or not lane.used:
        return
    limits, use = _read(lane, now)
    if limits.interval:
        parts = round(seconds / limits.part)
        for part in use.parts:
            part[0] += parts
        if use.base:
            use.base[0] += parts
    for one in use.open:
        one[2] += seconds
    for one in use.waiting:
        one[0], one[1] = one[0] + seconds, one[1] + seconds
    _spend(lane, use, now + seconds, used)
    _write(lane, use)


def settled_today(lane: LaneState, now: float) -> Amounts:
    """Tokens and money that the requests of this day have used which are settled."""
    if lane.amounts is None or not lane.used:
        return NOTHING
    _, use = _read(lane, now)
    if use.day != lane.day_of(now):
        return NOTHING
    tokens = use.today[0] - sum(one[3] for one in use.open)
    cost = use.today[1] - sum(one[6] for one in use.open)
    return Amounts(tokens=max(0, int(tokens)), cost=max(0, int(cost)))


def left_of_day(lane: LaneState, now: float) -> list[float | None]:
    """Tokens and money that are left of the day that `now` is in; None: no limit."""
    if lane.amounts is None:
        return [None, None]
    limits, use = _read(lane, now)
    today = use.today if use.day >= lane.day_of(now) else [0, 0]
    return [
        None if limit is None else limit - used
        for limit, used in zip(limits.day, today, strict=True)
    ]


def settle_open(lane: LaneState, share: float, now: float) -> None:
    """As if every request that is under way had used this share of its reservation."""
    if lane.amounts is None or not lane.used:
        return
    _, use = _read(lane, now)
    for ref, token, _, *reserved in list(use.open):
        used = Amounts(*(round(part * share) for part in reserved[: len(Amounts())]))
        settle([lane], int(ref), int(token), used, now)
