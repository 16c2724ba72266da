"""Converts files with rate limits of APIs to lanes.

    apis:
      openalex:
        rate_limit: {requests_per_interval: 10, interval_seconds: 1, max_parallel: 2}

Where such a file has both a rate and a `min_interval_seconds`, its programs follow the latter
alone; a lane keeps to both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.config.reader import mapping
from penstock.config.yaml_file import Located, read_mapping
from penstock.errors import ConfigError
from penstock.model.lane import LIMITS, LaneConfig, check_value

APIS, RATE_LIMIT = "apis", "rate_limit"


@dataclass(slots=True)
class Imported:
    """The limits of each API, converted to those of a lane, and what was not converted."""

    lanes: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """Entries that are not limits, by their path in the file: `openalex.base_url`."""
    unknown_limits: list[str] = field(default_factory=list)
    """Limits that lanes do not support: `openalex.rate_limit.burst`."""
    notes: list[str] = field(default_factory=list)


def import_lanes(path: Path) -> Imported:
    """Read such a file. Raises ConfigError, with the line, if it has another format."""
    apis = read_mapping(path).get(APIS)
    if apis is None or not isinstance(apis.value, dict):
        raise ConfigError(
            f"{path} has no `apis`: it must be a mapping such as "
            "{apis: {openalex: {rate_limit: {max_parallel: 2}}}}"
        )
    imported = Imported()
    for name, api in apis.value.items():
        _import(name, api, imported)
    if not imported.lanes:
        raise ConfigError(f"{path} has no limits under `rate_limit`: known are {', '.join(LIMITS)}")
    return imported


def check_no_apis(given: Mapping[str, Located], path: Path) -> None:
    """Raise ConfigError if a file of settings or lanes is a file of rate limits."""
    apis = given.get(APIS)
    if apis is not None and isinstance(apis.value, dict):
        raise ConfigError(
            f"{apis.source}: `apis` are rate limits in another form; "
            f"`penstock lanes import {path}` prints them as lanes"
        )


def _import(name: str, api: Located, imported: Imported) -> None:
    keys = dict(mapping(api, name))
    limits = keys.pop(RATE_LIMIT, Located(None, api.source))
    given = mapping(limits, f"{name}.{RATE_LIMIT}")
    imported.left_out += [f"{name}.{key}" for key in keys]
    unknown = [key for key in given if key not in LIMITS]
    imported.unknown_limits += [f"{name}.{RATE_LIMIT}.{key}" for key in unknown]
    lane: dict[str, Any] = {}
    for key in LIMITS:
        if key in given and given[key].value is not None:
            try:
                check_value(key, given[key].value)
            except ConfigError as error:
                raise ConfigError(f"{given[key].source}: {name}: {error}") from None
            lane[key] = given[key].value
    if not lane and unknown:
        raise ConfigError(
            f"{given[unknown[0]].source}: {name}: lanes have no limit {unknown[0]!r}; "
            f"there are: {', '.join(LIMITS)}"
        )
    if not lane:
        imported.notes.append(f"{name} has no limits, so no lane is made of it")
        return
    try:
        config = LaneConfig(**lane)
    except ConfigError as error:
        raise ConfigError(f"{limits.source}: {name}: {error}") from None
    imported.lanes[name] = lane
    least = config.min_interval_seconds
    if config.requests_per_interval is not None and config.interval_seconds is not None:
        apart = config.interval_seconds / config.requests_per_interval
        if least is not None and least < apart:
            imported.notes.append(
                f"{name}: min_interval_seconds does not override the rate of a lane: starts are "
                f"{apart:g} s apart, not {least:g}"
            )
