"""Computes what new jobs reserve of what their lanes count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.handlers import Handler
from penstock.errors import AmountTooLarge, ValidationError
from penstock.lanes.amounts import refusal
from penstock.lanes.state import LaneState, limits_of
from penstock.model.amounts import Amounts
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NO_LANE


def amount_of(handler: Handler, payload: dict[str, Any]) -> str:
    """What a job with this payload reserves, as its row keeps it. ValidationError where it cannot
    be computed."""
    amount, kind = handler.amount, handler.kind
    try:
        value = amount(payload) if callable(amount) else amount
    except Exception as error:
        raise ValidationError(
            f"the amount of a {kind!r} job cannot be computed: {error!r}"
        ) from error
    try:
        return Amounts.parse(value).text
    except (ValidationError, TypeError) as error:
        raise ValidationError(f"the amount of a {kind!r} job: {error}") from error


def amounts_of(
    handler: Handler,
    plain: Sequence[tuple[Any, str]],
    lanes: Sequence[str],
    lane_config: Callable[[str], LaneConfig],
) -> list[str | None]:
    """Of jobs with these payloads in these lanes, as their rows keep it. ValidationError where it
    cannot be computed; AmountTooLarge for more than the lane, as it is configured here, ever has.
    """
    families: dict[str, list[LaneState]] = {}
    found: list[str | None] = []
    for (payload, _), lane in zip(plain, lanes, strict=True):
        text = amount_of(handler, payload)
        if lane != NO_LANE:
            if lane not in families:
                families[lane] = _family(lane, lane_config)
            why = refusal(families[lane], Amounts.read(text) or Amounts())
            if why is not None:
                raise AmountTooLarge(why)
        found.append(text)
    return found


def _family(lane: str, lane_config: Callable[[str], LaneConfig]) -> list[LaneState]:
    """The lane, and its parent, as they are when nothing has happened in them."""
    config = lane_config(lane)
    names = [lane] if config.parent is None else [lane, config.parent]
    limits = [limits_of(name, lane_config(name)) for name in names]
    return [
        LaneState(
            name=one["name"],
            parent=one["parent"],
            spacing=one["spacing"],
            tolerance=one["tolerance"],
            max_parallel=one["max_parallel"],
            amounts=one["amounts"],
        )
        for one in limits
    ]
