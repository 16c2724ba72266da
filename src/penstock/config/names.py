"""The `names` section of a config file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.config.yaml_file import Located
from penstock.errors import ConfigError
from penstock.model.names import NamesConfig

_EXPECTED = {
    "models": "a mapping such as {en: en_core_web_sm}",
    "kinds": "a list such as [person, location]",
    "labels": 'a mapping such as {person: "[NAME]"}',
}


def read_names(section: Located, folder: Path) -> NamesConfig:
    """A model that is a folder is found beside the config file."""
    if not isinstance(section.value, dict):
        raise ConfigError(f"{section.source}: names must be a mapping of its settings")
    given: dict[str, Any] = {}
    for key, located in section.value.items():
        if key not in _EXPECTED:
            hint = f"there are: {', '.join(_EXPECTED)}"
            raise ConfigError(f"{located.source}: names has no key {key!r}; {hint}")
        given[key] = _texts(key, located)
    if "models" not in given:
        raise ConfigError(f"{section.source}: names needs models, {_EXPECTED['models']}")
    given["models"] = {
        language: str(folder / Path(model).expanduser()) if "/" in model else model
        for language, model in given["models"].items()
    }
    try:
        return NamesConfig(**given)
    except ConfigError as error:
        raise ConfigError(f"{section.source}: names: {error}") from None


def _texts(key: str, located: Located) -> tuple[str, ...] | dict[str, str]:
    """The words of a list or a mapping, as the key wants them."""
    value = located.value
    if key == "kinds" and isinstance(value, list):
        words = tuple(value)
        if all(isinstance(word, str) for word in words):
            return words
    if key != "kinds" and isinstance(value, dict):
        pairs = {name: one.value for name, one in value.items()}
        if all(isinstance(one, str) and one for one in pairs.values()):
            return pairs
    raise ConfigError(f"{located.source}: names: {key} must be {_EXPECTED[key]}")
