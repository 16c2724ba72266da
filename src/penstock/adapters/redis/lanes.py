"""Lanes in the form that the scripts use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from penstock.adapters.redis.scripts import given
from penstock.lanes.state import OWN, LaneState, limits_of
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import Busy, Permit, PermitRequest, Report, Returned
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE

_FIELDS = {field.name: str(field.type) for field in fields(LaneState)}
_FIELDS |= {own: _FIELDS[limit] for limit, own in OWN.items()}


def configs(names: Iterable[str], lane_config: Callable[[str], LaneConfig]) -> list[dict[str, Any]]:
    """What is configured of these lanes and their parents, parents first."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        if name not in (NO_LANE, UNKNOWN_LANE) and name not in found:
            config = lane_config(name)
            if config.parent is not None and config.parent not in found:
                found[config.parent] = _config(config.parent, lane_config(config.parent))
            found[name] = _config(name, config)
    return list(found.values())


def _config(name: str, config: LaneConfig) -> dict[str, Any]:
    return given({**limits_of(name, config), "assumed": config.assumed})


def lane(told: Sequence[Any]) -> tuple[LaneState, int]:
    """The lane, and how many jobs wait in its own lines; see `lines.told`."""
    name, flat, in_flight, waiting, asking = told
    values: dict[str, Any] = {"name": name, "parent": None, "in_flight": in_flight}
    values["asking"] = asking
    for field, text in zip(flat[::2], flat[1::2], strict=True):
        if field in _FIELDS and text != "":
            kind = _FIELDS[field]
            values[field] = (
                text if "str" in kind else float(text) if "float" in kind else int(float(text))
            )
    for limit, own in OWN.items():
        if own in values:
            values[limit] = values.pop(own)
        elif own == OWN["max_parallel"] and "learnt_parallel" in values:
            values[limit] = values["learnt_parallel"]
    return LaneState(**values), waiting


def report_ask(report: Report) -> dict[str, Any]:
    return given({**report._asdict(), "news": report.news.value})


def returned_ask(one: Returned, trip: int) -> dict[str, Any]:
    """`trip` is the first that it was given back with."""
    ask: dict[str, Any] = {
        "lane": one.permit.lane,
        "ref": one.permit.ref,
        "job": one.job,
        "token": one.token,
        "id": one.id,
        "trip": trip,
    }
    if one.report is not None:
        ask["report"] = report_ask(one.report)
    if one.used is not None:
        ask["used"] = one.used
    if one.started:
        ask["started"] = True
    return ask


def permit(request: PermitRequest, told: Sequence[Any]) -> Permit | Busy:
    """See lua/permits.lua."""
    match told:
        case ["permit", start_at, void_at, timeout, trial]:
            return Permit(
                request.lane,
                request.ref,
                float(start_at),
                float(void_at),
                float(timeout) if timeout else None,
                bool(trial),
            )
        case [_, name, until, why, give_up, *refused]:
            at = float(until) if until else None
            return Busy(name, at, why, bool(give_up), bool(refused))
    raise AssertionError(told)
