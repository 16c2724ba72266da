"""Resolves a lane's limits: as configured, by pattern, or the safe default."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import ConfigError, ValidationError
from penstock.model.lane import LIMITS, RATE, LaneConfig, LaneLimits
from penstock.model.lane_table import find, resolve

MAX_PACED = 10_000
"""Lanes whose pace is remembered; the newest."""

log = logging.getLogger("penstock.lanes")


class LaneRegistry:
    """The configured lanes of a process. What is given for a built-in lane changes it; a lane
    that a pattern matches has what the pattern gives, changed by what is given for it."""

    def __init__(
        self,
        lanes: Mapping[str, LaneConfig | Mapping[str, Any]] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._lanes = resolve(lanes or {}, os.environ if environment is None else environment)
        self._warned: set[str] = set()
        self._paced: dict[str, LaneConfig] = {}

    def named(self) -> dict[str, LaneConfig]:
        """The lanes that are not patterns."""
        return {name: config for name, config in self._lanes.items() if "*" not in name}

    def knows(self, name: str) -> bool:
        """Whether somebody configured the lane, by name or by pattern, or it is built in."""
        return self._find(name) is not None

    def configured(self, name: str) -> bool:
        """Whether somebody configured the lane, by name or by pattern."""
        config = self._find(name)
        return config is not None and not config.assumed

    def config(self, name: str) -> LaneConfig:
        """The limits of the lane called `name`; says so once when nobody configured it."""
        found = self._paced.get(name) or self._find(name)
        if found is not None:
            return found
        default = LaneConfig(assumed=True)
        if name not in self._warned:
            self._warned.add(name)
            log.warning(
                "lane %r is not configured: a start every %g s, %d at a time",
                name,
                default.spacing,
                default.parallel,
            )
        return default

    def limits(self, name: str, given: Mapping[str, Any]) -> LaneLimits:
        """What an operator gives a lane. Part of a rate is completed from what is configured, which
        goes on to bind. ValidationError says what is wrong with it."""
        unknown = [key for key in given if key not in LIMITS]
        if unknown:
            raise ValidationError(f"{unknown[0]!r} is not one of {', '.join(LIMITS)}")
        try:
            whole = (self._find(name) or LaneConfig()).with_changes(given)
            rate = RATE if any(key in RATE for key in given) else ()
            return LaneLimits(**{**given, **{key: getattr(whole, key) for key in rate}})
        except ConfigError as error:
            raise ValidationError(str(error)) from None

    def pace(self, name: str, seconds: float) -> None:
        """From now on let starts in a lane be so far apart at least, because what is behind it
        asks for that. 0: as configured again. The queue learns of it with the next permit."""
        if not seconds and name not in self._paced:
            return
        base = self._find(name) or LaneConfig()
        least = max(seconds, base.min_interval_seconds or 0.0)
        self._paced.pop(name, None)  # the newest are the last
        self._paced[name] = replace(base, min_interval_seconds=least, assumed=False)
        if len(self._paced) > MAX_PACED:
            del self._paced[next(iter(self._paced))]

    def _find(self, name: str) -> LaneConfig | None:
        return find(self._lanes, name)
