"""Settings from arguments, the environment and penstock.yaml, in that order of precedence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.config.lanes import check_no_apis, read_lanes
from penstock.config.reader import mapping, read_section
from penstock.config.setting_names import (
    PLAIN,
    VARIABLES,
    check_variables,
    listed,
    unknown_argument,
)
from penstock.config.settings import Config, hide_secrets
from penstock.config.yaml_file import Located, read_mapping
from penstock.model.lane import LaneConfig
from penstock.model.lane_table import resolve
from penstock.model.settings import DEFAULT_FILE

__all__ = ["DEFAULT_FILE", "Config", "hide_secrets", "load"]


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    lanes: Mapping[str, LaneConfig | Mapping[str, Any]] | None = None,
) -> Config:
    """Load the effective settings. `arguments` that are None count as not given. `lanes` come from
    the program and take precedence over the file's; they are validated only after merging."""
    environment = os.environ if environment is None else environment
    path = Path(file or environment.get("PENSTOCK_CONFIG") or DEFAULT_FILE)
    named = bool(file or environment.get("PENSTOCK_CONFIG"))
    given = read_mapping(path) if named or path.exists() else {}
    check_no_apis(given, path)
    sources: dict[str, str] = {}
    own_lanes = read_lanes(given.pop("lanes", None), path.parent, sources)
    for variable, place in VARIABLES.items():
        if environment.get(variable):
            value = listed(place[-1], environment[variable])
            _put(given, place, Located(value, f"environment {variable}"))
    for name, value in (arguments or {}).items():
        if value is not None:
            if name not in PLAIN:
                raise unknown_argument(name)
            _put(given, PLAIN[name], Located(listed(name, value), "argument"))
    check_variables(environment)
    config = read_section(Config, Located(given, str(path)), sources)
    if "browser" in sources:
        # The lane `browser` gets as many places as there are tabs, unless it is told how many.
        own_lanes["browser"] = {"max_parallel": config.browser.tabs, **own_lanes.get("browser", {})}
        sources.setdefault("lanes.browser.max_parallel", sources["browser"])
    resolve({**own_lanes, **(lanes or {})}, environment, sources)
    engine = replace(
        config.engine,
        outbound=config.outbound,
        logging=config.logging,
        prices=config.prices,
        budgets=config.budgets,
    )
    names = config.names and config.names.beside(path.parent)
    return replace(config, engine=engine, names=names, lanes=own_lanes, sources=sources)


def _put(given: dict[str, Located], place: tuple[str, ...], located: Located) -> None:
    """Set the value at `place`, creating the sections above it."""
    *sections, key = place
    for depth, name in enumerate(sections, 1):
        section = given.get(name, Located(None, located.source))
        if isinstance(section.value, str) and place[:2] == ("llm", "models") and depth == 3:
            inner = {"model": section}
        else:
            inner = dict(mapping(section, ".".join(sections[:depth])))
        given[name] = Located(inner, section.source)
        given = inner
    given[key] = located
