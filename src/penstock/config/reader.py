"""Reads sections of settings, as their dataclasses describe them.

Errors name the place of a value, the setting, and what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

from penstock.config.setting_names import PLAIN_SECTIONS, unknown_key
from penstock.config.yaml_file import Located
from penstock.errors import ConfigError
from penstock.model.section import choices, keys, one_of, types

T = TypeVar("T")
_SWITCHES = {"true": True, "1": True, "false": False, "0": False}
_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def read_section(section: type[T], located: Located, sources: dict[str, str], path: str = "") -> T:
    """Build a `section` from the settings in the mapping `located`. Adds the source of each setting
    to `sources`, by its dotted path."""
    known, given = keys(section), {}
    shorthand = getattr(section, "SHORTHAND", None)
    if shorthand and isinstance(located.value, str):
        located = Located({shorthand: located}, located.source)
    for key, one in mapping(located, path).items():
        if key not in known:
            raise unknown_key(path, key, one, known)
        given[key] = _read(types(section)[key], one, join(path, key), known[key], sources)
    for key, field in known.items():
        if key not in given and field.default is field.default_factory is MISSING:
            raise ConfigError(f"{located.source}: {_shown(path)} needs {key}{_such(field)}")
    try:
        return section(**given)
    except ConfigError as error:
        name = join(path, error.setting or "")
        source = sources.get(name, located.source)
        raise ConfigError(f"{source}: {_label(path)}{error}", setting=name) from None


def _read(
    kind: Any, located: Located, path: str, field: Field[Any], sources: dict[str, str]
) -> Any:
    sources[path] = located.source
    if isinstance(kind, UnionType):  # with None
        kind = get_args(kind)[0]
        if located.value is None and not is_dataclass(kind):
            return None
    if isinstance(kind, type) and is_dataclass(kind):
        return read_section(kind, located, sources, path)
    if get_origin(kind) is Mapping:
        return {
            name: _read(get_args(kind)[1], one, join(path, name), field, sources)
            for name, one in mapping(located, path, _such(field)).items()
        }
    try:
        return _convert(kind, located.value)
    except (ValueError, TypeError, KeyError, OverflowError):
        parent, _, key = path.rpartition(".")
        expected = f"{_expected(kind)}{_such(field)}"
        secret = "" if field.metadata.get("secret") else f", not {_value(located.value)}"
        raise ConfigError(
            f"{located.source}: {_label(parent)}{key} must be {expected}{secret}", setting=path
        ) from None


def _convert(kind: Any, value: Any) -> Any:
    """Convert a value to the type `kind`; raises ValueError and the like if that is impossible.
    Numbers and booleans may be strings, as in the environment."""
    if kind is bool:
        return value if isinstance(value, bool) else _SWITCHES[str(value).lower()]
    if get_origin(kind) is tuple:
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ValueError
        return tuple(value)
    if kind is Any:  # a scalar
        if not isinstance(value, str | int | float):
            raise ValueError
        return value
    if kind in (int, float):
        whole = not isinstance(value, float) or value.is_integer()
        if isinstance(value, bool) or (kind is int and not whole):
            raise ValueError
        return kind(value)
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def mapping(located: Located, path: str, such: str = "") -> dict[str, Located]:
    """Return the entries of a mapping; empty if nothing is given."""
    if located.value is None:
        return {}
    if not isinstance(located.value, dict):
        raise ConfigError(f"{located.source}: {_shown(path)} must be a mapping{such}", setting=path)
    return located.value


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key


def _shown(path: str) -> str:
    return path.replace(".", ": ", 1)


def _label(path: str) -> str:
    """Prefix of a setting's name in error messages; empty in sections that need none."""
    return "" if not path or path in PLAIN_SECTIONS else f"{_shown(path)}: "


def _expected(kind: Any) -> str:
    if words := choices(kind):
        return one_of(words)
    if get_origin(kind) is tuple:
        return "a list of texts"
    return _EXPECTED.get(kind, "a text or a number")


def _such(field: Field[Any]) -> str:
    example = field.metadata.get("example")
    return "" if example is None else f", such as {example}"


def _value(value: Any) -> str:
    return "a mapping" if isinstance(value, dict) else repr(value)
