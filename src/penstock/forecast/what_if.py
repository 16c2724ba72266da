"""What-if questions to a forecast: lanes with other limits, and other worker processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigError, ValidationError
from penstock.lanes import breaker, view
from penstock.lanes.limits import repace
from penstock.lanes.state import LaneState, limits_of
from penstock.model.lane import KEYS, LIMITS, RATE, TOKEN_RATES, LaneConfig
from penstock.ports.lanes import LaneCommand

RESUMED = "resumed"
"""As if the lane were resumed, and its service back."""
AMOUNTS = (
    "interval_seconds",
    *TOKEN_RATES,
    "tokens_per_day",
    "cost_per_day",
    "window",
    "oversized",
)
ASKED = (*LIMITS, *(key for key in AMOUNTS if key not in LIMITS), RESUMED)
"""Keys that can be asked about."""

Changes = Mapping[str, Mapping[str, Any]]
"""Changes of lanes, by name and key."""


@dataclass(slots=True, frozen=True)
class WorkerPool:
    """Worker processes that handle the same kinds."""

    workers: int
    kinds: frozenset[str] | None
    """None: all."""
    processes: frozenset[str] = frozenset()
    """Their ids; of those that are only asked about, none."""


def parse_changes(given: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read `LANE.KEY=VALUE`. ValidationError says what is wrong with it."""
    changes: dict[str, dict[str, Any]] = {}
    for one in given:
        place, equals, text = one.partition("=")
        lane, dot, key = place.rpartition(".")
        if not (equals and dot and lane and key):
            raise ValidationError(f"{one!r} is not LANE.KEY=VALUE, as in embedder.max_parallel=8")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        changes.setdefault(lane, {})[key] = value
    return changes


def change_lanes(
    lanes: Mapping[str, LaneState],
    changes: Changes,
    config_of: Callable[[str], LaneConfig],
    now: float,
) -> None:
    """Change the limits of lanes. ValidationError for a lane that is not in use, or a key or value
    that it cannot have."""
    for name, given in changes.items():
        if name not in lanes:
            raise not_in_use(name)
        keys = dict(given)
        if unknown := [key for key in keys if key not in ASKED]:
            raise ValidationError(f"{unknown[0]!r} is not one of {', '.join(ASKED)}")
        resumed = keys.pop(RESUMED, False)
        if not isinstance(resumed, bool):
            raise ValidationError(f"lane {name!r}: {RESUMED} is true or false, not {resumed!r}")
        if resumed:
            view.control(lanes[name], LaneCommand.RESUME)
            breaker.succeeded(lanes[name])
        if keys:
            _change(lanes[name], keys, config_of(name), now)


def not_in_use(lane: str) -> ValidationError:
    return ValidationError(f"lane {lane!r} is not in use; `penstock lanes` lists those that are")


def _change(lane: LaneState, keys: dict[str, Any], config: LaneConfig, now: float) -> None:
    try:
        limits = limits_of(lane.name, config.with_changes(keys))
    except ConfigError as error:
        raise ValidationError(f"lane {lane.name!r}: {error}") from None
    before = lane.pace
    if any(key in RATE for key in keys):
        lane.spacing, lane.tolerance = limits["spacing"], limits["tolerance"]
        repace(lane, before, now)
    if "max_parallel" in keys:
        lane.max_parallel = limits["max_parallel"]
    if "requests_per_day" in keys:
        lane.per_day = limits["per_day"]
    if any(key in AMOUNTS for key in keys):
        lane.amounts = limits["amounts"]


def pools_of(
    live: Sequence[tuple[str, int, Collection[str]]],
    workers: int | None,
    processes: int | None,
    usual: int,
) -> list[WorkerPool]:
    """The pools of live processes (id, workers, kinds), or of those that are asked about, of which
    each has `workers`, or as many as the largest that lives."""
    if processes is not None:
        each = workers or max((many for _, many, _ in live), default=usual)
        kinds = frozenset(kind for _, _, some in live for kind in some)
        ids = frozenset(one for one, _, _ in live)
        return [WorkerPool(each * processes, kinds or None, ids)] if processes else []
    found: dict[frozenset[str], list[tuple[str, int]]] = {}
    for one, many, some in live:
        found.setdefault(frozenset(some), []).append((one, workers or many))
    return [
        WorkerPool(sum(many for _, many in alike), kinds, frozenset(one for one, _ in alike))
        for kinds, alike in found.items()
    ]


assert set(ASKED) - {RESUMED} <= set(KEYS)
