"""YAML files in which every value knows its line, for error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import ConfigError


class Located(NamedTuple):
    """A value and its position in the file. Mappings hold Located values, lists plain ones."""

    value: Any
    source: str


def read_mapping(path: Path) -> dict[str, Located]:
    """Read the top-level mapping of a YAML file; empty for an empty file."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise ConfigError(f"there is no config file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    import yaml  # here, because most runs have no file

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        located = None if node is None else _locate(loader, node, path)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path} is not YAML: {error}") from None
    if located is None or located.value is None:
        return {}
    if not isinstance(located.value, dict):
        raise ConfigError(f"{path} must hold settings such as `queue: sqlite:///jobs.db`")
    return located.value


def _locate(loader: Any, node: Any, path: Path) -> Located:
    import yaml

    source = f"{path} line {node.start_mark.line + 1}"
    if not isinstance(node, yaml.MappingNode):
        return Located(loader.construct_object(node, deep=True), source)
    loader.flatten_mapping(node)
    found: dict[str, Located] = {}
    for key_node, value_node in node.value:
        key = str(loader.construct_object(key_node, deep=True))
        here = f"{path} line {key_node.start_mark.line + 1}"
        if key in found:
            raise ConfigError(f"{here}: {key} is given twice")
        found[key] = Located(_locate(loader, value_node, path).value, here)
    return Located(found, source)
