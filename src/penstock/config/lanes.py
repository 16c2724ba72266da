"""The `lanes` section of a config file; its keys are the fields of `LaneConfig`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.config.rate_limits import check_no_apis
from penstock.config.reader import mapping
from penstock.config.setting_names import unknown_key
from penstock.config.yaml_file import Located, read_mapping
from penstock.errors import ConfigError
from penstock.model.lane import KEYS, PROFILES, check_value


def read_lanes(
    section: Located | None, folder: Path, sources: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """Read the section: lane name -> its configured keys. The section may name a file instead. Adds
    the source of each lane and key to `sources`."""
    if section is None:
        return {}
    sources["lanes"] = section.source
    if isinstance(section.value, str):
        lanes = read_mapping(folder / section.value)
        check_no_apis(lanes, folder / section.value)
        inner = lanes.get("lanes")
        if len(lanes) == 1 and inner is not None and not _is_lane(inner):
            # A whole `lanes` section, such as `lanes import` writes.
            lanes = mapping(inner, "lanes")
    else:
        lanes = mapping(section, "lanes", " of lanes, or the name of a file with one")
    return {name: _read_lane(name, lane, sources) for name, lane in lanes.items()}


def _is_lane(one: Located) -> bool:
    """Whether a mapping holds the limits of one lane, rather than several lanes."""
    return isinstance(one.value, dict) and not {*KEYS, PROFILES}.isdisjoint(one.value)


def _read_lane(name: str, lane: Located, sources: dict[str, str]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    sources[f"lanes.{name}"] = lane.source
    for key, located in mapping(lane, f"lane {name}", " of limits").items():
        sources[f"lanes.{name}.{key}"] = located.source
        if key == PROFILES:
            profiles = mapping(located, f"lane {name}: profiles", " by variable")
            read[key] = {one: _read_lane(name, changes, {}) for one, changes in profiles.items()}
            continue
        if key not in KEYS:
            raise unknown_key(f"lane {name}", key, located, KEYS)
        try:
            check_value(key, located.value)
        except ConfigError as error:
            raise ConfigError(f"{located.source}: lane {name}: {error}") from None
        read[key] = located.value
    return read
