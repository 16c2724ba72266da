"""The settings of an app: those of jobs at once, all of them where one asks for more.

An app that is given no more than settings of the engine, by argument, needs no reader of files and
variables, and none of the services' sections: neither is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.model.lane import LaneConfig
from penstock.model.section import keys, types
from penstock.model.settings import DEFAULT_FILE, DEFAULT_QUEUE, EngineConfig

if TYPE_CHECKING:
    from penstock.config import Config

_VARIABLES = ("PENSTOCK_", "KAFKA_")
"""What the names of environment variables that are settings begin with."""


class AppSettings:
    """The settings of an app, from its arguments, the environment and its file."""

    queue: str
    engine: EngineConfig
    lanes: Mapping[str, Mapping[str, Any]]
    """Those of the file."""
    tenant_weights: Mapping[str, float]

    def __init__(
        self,
        arguments: Mapping[str, Any],
        file: str | None,
        lanes: Mapping[str, Mapping[str, Any] | LaneConfig] | None,
        weights: Mapping[str, float] | None,
    ) -> None:
        self._arguments = {name: one for name, one in arguments.items() if one is not None}
        self._lanes = lanes
        self._weights = weights or {}
        self._config: Config | None = None
        engine = None if file or weights or _given_outside() else self._engine()
        if engine is None:
            self.config = self._load(file, os.environ)
        else:
            self.queue, self.engine = self._arguments.get("queue", DEFAULT_QUEUE), engine
            self.lanes, self.tenant_weights = {}, {}

    def _engine(self) -> EngineConfig | None:
        """None where the reader has more to do, or to refuse, than to take the arguments."""
        given = dict(self._arguments)
        queue, known = given.pop("queue", DEFAULT_QUEUE), keys(EngineConfig)
        expected = types(EngineConfig)
        if not queue or any(name not in known for name in given):
            return None
        if type(queue) is not str or any(type(given[name]) is not expected[name] for name in given):
            return None
        try:
            return EngineConfig(**given)
        except ConfigError:
            return None

    @property
    def config(self) -> Config:
        """All settings."""
        if self._config is None:  # arguments are all there was
            self._config = self._load(os.devnull, {})
        return self._config

    @config.setter
    def config(self, config: Config) -> None:
        self._config = config
        self.queue, self.engine = config.queue, config.engine
        self.lanes, self.tenant_weights = config.lanes, config.tenant_weights

    def _load(self, file: str | None, environment: Mapping[str, str]) -> Config:
        from penstock import config

        loaded = config.load(self._arguments, file=file, environment=environment, lanes=self._lanes)
        return replace(loaded, tenant_weights={**loaded.tenant_weights, **self._weights})


def _given_outside() -> bool:
    return any(name.startswith(_VARIABLES) for name in os.environ) or Path(DEFAULT_FILE).exists()
