"""The configured lanes, resolved by name and pattern over the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from penstock.errors import ConfigError
from penstock.model.lane import BUILT_IN, PROFILES, LaneConfig


def resolve(
    lanes: Mapping[str, LaneConfig | Mapping[str, Any]],
    environment: Mapping[str, str],
    sources: Mapping[str, str] | None = None,
) -> dict[str, LaneConfig]:
    """Every lane and pattern with its limits. ConfigError names the lane that is wrong and where
    it stands, if `sources` knows that."""
    resolved = {name: replace(config, assumed=True) for name, config in BUILT_IN.items()}

    def wrong(name: str, what: object) -> ConfigError:
        where = f"{sources[name]}: " if sources and name in sources else ""
        return ConfigError(f"{where}lane {name!r}: {what}")

    # Patterns first, the widest first of all, so that others can build on them.
    for name in sorted(lanes, key=lambda name: ("*" not in name, len(name))):
        given = lanes[name]
        try:
            if isinstance(given, LaneConfig):
                resolved[name] = given
            else:
                resolved[name] = _changed(find(resolved, name), given, environment)
        except ConfigError as error:
            raise wrong(name, error) from None
    for name, config in resolved.items():
        if config.parent is None:
            continue
        if config.parent not in resolved:
            raise wrong(name, f"its parent {config.parent!r} is not configured")
        if resolved[config.parent].parent is not None:
            raise wrong(name, f"its parent {config.parent!r} has a parent itself")
    return resolved


def find(lanes: Mapping[str, LaneConfig], name: str) -> LaneConfig | None:
    """The lane of that name, or the longest pattern that matches it."""
    if name in lanes:
        return lanes[name]
    patterns = [p for p in lanes if "*" in p and fnmatchcase(name, p)]
    return lanes[max(patterns, key=len)] if patterns else None


def _changed(
    base: LaneConfig | None, given: Mapping[str, Any], environment: Mapping[str, str]
) -> LaneConfig:
    changes = dict(given)
    profiles = changes.pop(PROFILES, {})
    config = (base or LaneConfig()).with_changes(changes)
    for variable, profile in profiles.items():
        if environment.get(variable):
            config = config.with_changes(profile)
    return config
