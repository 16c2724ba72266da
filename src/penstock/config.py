"""Settings from arguments, the environment and penstock.yaml, in that order of precedence."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from penstock.model.errors import ConfigError
from penstock.model.settings import Settings

DEFAULT_FILE = "penstock.yaml"
DEFAULT_QUEUE = "sqlite:///penstock.db"
_TYPES = {"queue": "str"} | {field.name: str(field.type) for field in fields(Settings)}
_DEFAULTS: dict[str, Any] = {"queue": DEFAULT_QUEUE} | {f.name: f.default for f in fields(Settings)}


@dataclass(slots=True, frozen=True)
class Config:
    """Effective settings, and where each came from."""

    queue: str
    settings: Settings
    sources: Mapping[str, str]

    def rows(self) -> list[tuple[str, Any, str]]:
        """(name, value, source) of every setting, secrets hidden."""
        values = {"queue": hide_secrets(self.queue)} | {
            name: getattr(self.settings, name) for name in _TYPES if name != "queue"
        }
        return [(name, values[name], self.sources[name]) for name in _TYPES]


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The effective settings. `arguments` that are None count as not given."""
    environment = os.environ if environment is None else environment
    values, sources = dict(_DEFAULTS), dict.fromkeys(_DEFAULTS, "default")
    for name, (value, source) in _from_file(file or environment.get("PENSTOCK_CONFIG")).items():
        values[name], sources[name] = _convert(name, value, source), source
    for name in _TYPES:
        variable = f"PENSTOCK_{name.upper()}"
        if environment.get(variable):
            source = f"environment {variable}"
            values[name], sources[name] = _convert(name, environment[variable], source), source
    for name, value in (arguments or {}).items():
        if value is not None:
            if name not in _TYPES:
                raise ConfigError(_unknown(name, "argument"))
            values[name], sources[name] = _convert(name, value, "argument"), "argument"
    queue = values.pop("queue")
    return Config(queue, Settings(**values), sources)


def hide_secrets(url: str) -> str:
    """`url` without its password, wherever in it that stands."""
    parts = urlsplit(url)
    if parts.password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.split(':')[0]}:***@{host}")
    query = re.sub(r"(?i)\b([^=&]*(?:pass|secret|token|key)[^=&]*)=[^&]*", r"\1=***", parts.query)
    hidden = parts._replace(query=query)
    return url if hidden == urlsplit(url) else urlunsplit(hidden)


def _from_file(file: str | os.PathLike[str] | None) -> dict[str, tuple[Any, str]]:
    """name -> (value, source) from a YAML file; the default file may be missing."""
    path = Path(file or DEFAULT_FILE)
    try:
        text = path.read_text()
    except FileNotFoundError:
        if file is None:
            return {}
        raise ConfigError(f"there is no config file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    import yaml  # here, because most runs have no file

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict) or not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path} must hold settings such as `queue: sqlite:///jobs.db`")
    lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
    found = {}
    for name, value in data.items():
        source = f"{path} line {lines.get(str(name), 1)}"
        if name not in _TYPES:
            raise ConfigError(_unknown(str(name), source))
        found[name] = (value, source)
    return found


def _unknown(name: str, source: str) -> str:
    close = get_close_matches(name, _TYPES, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(_TYPES)}"
    return f"{source}: unknown setting {name!r}{hint}"


def _convert(name: str, value: Any, source: str) -> Any:
    kind = _TYPES[name]
    try:
        if kind == "bool":
            if isinstance(value, bool):
                return value
            return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
        if isinstance(value, bool):
            raise ValueError
        if kind == "int":
            if isinstance(value, float) and not value.is_integer():
                raise ValueError
            return int(value)
        if kind == "float":
            return float(value)
        if not isinstance(value, str) or not value:
            raise ValueError
        return value
    except (ValueError, TypeError, KeyError, OverflowError):
        what = {"bool": "true or false", "int": "a whole number", "float": "a number"}
        expected = what.get(kind, "a text")
        raise ConfigError(f"{source}: {name} must be {expected}, not {value!r}") from None
