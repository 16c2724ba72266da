"""Displays a lane: a line in a list, and its trouble, if any."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.api.attention import starts_per_second
from penstock.cli.output import Looks, duration, print_table, printable

if TYPE_CHECKING:
    from penstock.ports.lanes import LaneInfo

STYLES = {
    "open": "bold red",
    "suspect": "yellow",
    "paused": "magenta",
    "rate": "yellow",
    "credentials": "bold red",
}


def in_words(lane: LaneInfo) -> str:
    """Format the effective limits, and whether they are overridden."""
    rate = f"one start every {lane.spacing:.3g} s" if lane.spacing else "no rate limit"
    day = "" if lane.per_day is None else f", {lane.per_day:,} a day"
    by = f"overridden: {_by_hand(lane)}" if lane.limits else "as configured"
    if lane.learnt and "max_parallel" not in (lane.limits.given() if lane.limits else {}):
        by += f"; parallel as learnt: {lane.learnt.why}"
    return f"{rate}, {lane.max_parallel:,} in parallel{day} ({by})"


def _by_hand(lane: LaneInfo) -> str:
    given = {} if lane.limits is None else lane.limits.given()
    return ", ".join(f"{key} {value:g}" for key, value in given.items()) or "-"


def print_lanes(lanes: Sequence[LaneInfo]) -> None:
    """Print a table of lanes; empty columns are left out."""
    parents, by_hand = any(lane.parent for lane in lanes), any(lane.limits for lane in lanes)
    learns = any(lane.learnt for lane in lanes)
    usual = any(lane.usual_tokens for lane in lanes)
    rows = [
        {
            "lane": printable(lane.name),
            **({"parent": printable(lane.parent or "-")} if parents else {}),
            "in use": f"{lane.in_flight} of {lane.max_parallel}",
            **({"learnt": _learnt(lane)} if learns else {}),
            "starts/s": _starts(lane),
            "waiting": f"{lane.waiting:,}",
            "breaker": _breaker(lane),
            "blocked": _blocked(lane) if lane.blocked_why else "-",
            "today": _today(lane),
            **({"overrides": _by_hand(lane)} if by_hand else {}),
            **({"usual tokens": _usual(lane)} if usual else {}),
        }
        for lane in lanes
    ]
    right, styles = (
        ["in use", "starts/s", "waiting", "today"],
        {"breaker": _style, "blocked": _style},
    )
    fold = ["lane", "learnt", "overrides", "usual tokens"]
    print_table(rows, Looks(right, fold=fold, styles=styles))


def _learnt(lane: LaneInfo) -> str:
    """Format what `max_parallel` has become, why, and how long ago."""
    if lane.learnt is None:
        return "-"
    known = lane.learnt
    told = "" if known.told is None else f"; {known.told:,} left by the provider"
    if not known.since:
        return f"{known.max_parallel:,}: {known.why}{told}"
    ago = duration(time.time() - known.since)
    return f"{known.max_parallel:,} for {ago}: {known.why}{told}"


def _usual(lane: LaneInfo) -> str:
    kinds = (lane.usual_tokens or {}).items()
    return ", ".join(f"{printable(kind or '-')} {tokens:,}" for kind, tokens in kinds) or "-"


def _starts(lane: LaneInfo) -> str:
    now = starts_per_second(lane.spacing)
    if lane.configured_spacing is None:
        return now
    return f"{now} (slowed from {starts_per_second(lane.configured_spacing)})"


def _breaker(lane: LaneInfo) -> str:
    if lane.retry_at is None:
        return lane.breaker
    away = lane.retry_at - time.time()
    return f"open, next attempt in {duration(away)}" if away > 0 else "open, trying now"


def _blocked(lane: LaneInfo) -> str:
    if lane.blocked_until is None:
        return str(lane.blocked_why)
    return f"{lane.blocked_why}, {duration(lane.blocked_until - time.time())} more"


def _today(lane: LaneInfo) -> str:
    used = f"{lane.used_today:,}"
    return used if lane.per_day is None else f"{used} of {lane.per_day:,}"


def _style(cell: str) -> str | None:
    return STYLES.get(cell.replace(",", " ").split(" ")[0])
