"""Names of settings: in files by section, in the environment and as arguments by name alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, get_origin

from penstock.config.yaml_file import Located
from penstock.errors import ConfigError
from penstock.model.llm import ROLES, LlmConfig, ModelConfig
from penstock.model.section import keys, types
from penstock.model.server import ServerConfig
from penstock.model.service_settings import AnswersConfig, DocumentsConfig, ResearchConfig
from penstock.model.settings import EngineConfig, LoggingConfig, OutboundConfig

Path = tuple[str, ...]
TOP = ("queue", "store", "blobs")
"""Settings outside any section."""
PLAIN_SECTIONS: dict[str, type] = {
    "engine": EngineConfig,
    "documents": DocumentsConfig,
    "research": ResearchConfig,
    "answers": AnswersConfig,
    "outbound": OutboundConfig,
    "logging": LoggingConfig,
}
"""Sections whose settings can be named without the section."""
_SERVER = ("idempotency_seconds", "actions_seconds", "mcp_operator_tools")
"""The settings of the server for which the same is true. The others are not read from the
environment, where Kubernetes sets PENSTOCK_PORT and the like for services."""
PLAIN: dict[str, Path] = {
    **{key: (key,) for key in TOP},
    **{key: (name, key) for name, section in PLAIN_SECTIONS.items() for key in keys(section)},
    **{key: ("server", key) for key in _SERVER},
}
"""Path of each setting that can be named without its section."""
LISTS = {
    key
    for section in (*PLAIN_SECTIONS.values(), ServerConfig)
    for key, kind in types(section).items()
    if key in PLAIN and get_origin(kind) is tuple
}
VARIABLES: dict[str, Path] = {
    **{f"PENSTOCK_{key.upper()}": path for key, path in PLAIN.items()},
    **{f"PENSTOCK_LLM_{key.upper()}": ("llm", key) for key in keys(LlmConfig) if key != "models"},
    **{
        f"PENSTOCK_LLM_{role.upper()}_{key.upper()}": ("llm", "models", role, key)
        for role in ROLES
        for key in keys(ModelConfig)
    },
    "KAFKA_BOOTSTRAP": ("intake", "kafka", "bootstrap"),
}
"""Path of each setting that has an environment variable."""
_SLIP = 0.8
"""Similarity (by difflib) from which on a name counts as a misspelling of another."""


def listed(key: str, value: Any) -> Any:
    """Convert the value of a setting to what it would be in a file: any sequence, and a string with
    commas, becomes a list."""
    if key not in LISTS:
        return value
    if isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    return list(value) if isinstance(value, tuple | set | frozenset) else value


def unknown_key(path: str, key: str, located: Located, known: Collection[str]) -> ConfigError:
    """Build the error for a key that the section at `path` does not have."""
    if key in PLAIN:
        return _misplaced(key, located)
    if not path:
        return _unknown(f"unknown setting {key!r}", key, located.source, known, tuple(PLAIN))
    what = f"{path.replace('.', ': ', 1)} has no key {key!r}"
    return _unknown(what, key, located.source, known)


def unknown_argument(key: str) -> ConfigError:
    return _unknown(f"unknown setting {key!r}", key, "argument", list(PLAIN))


def check_variables(environment: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that is almost the name of a setting. Others may start with
    PENSTOCK_ too: keys that the config names, and what Kubernetes sets for a service."""
    known = [
        name.removeprefix("PENSTOCK_") for name in (*VARIABLES, "PENSTOCK_CONFIG", "PENSTOCK_APP")
    ]
    for variable in environment:
        name = variable.removeprefix("PENSTOCK_")
        if name == variable or name in known:
            continue
        if close := get_close_matches(name, known, n=1, cutoff=_SLIP):
            hint = f"did you mean PENSTOCK_{close[0]}?"
            raise ConfigError(f"environment {variable}: there is no such setting; {hint}")


def _unknown(
    what: str, key: str, source: str, known: Collection[str], more: Collection[str] = ()
) -> ConfigError:
    """`more` are further candidates for a suggestion, too many to list."""
    close = get_close_matches(key, [*known, *more], n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
    return ConfigError(f"{source}: {what}; {hint}", setting=key)


def _misplaced(key: str, located: Located) -> ConfigError:
    import yaml

    *section, _ = PLAIN[key]
    where = f"in the section {section[0]}" if section else "at the top level, in no section"
    right: Any = {key: listed(key, _plain(located))}
    for name in section:
        right = {name: right}
    text = yaml.safe_dump(right, default_flow_style=True, width=1000).strip()[1:-1]
    return ConfigError(f"{located.source}: {key} belongs {where}: write `{text}`", setting=key)


def _plain(located: Located) -> Any:
    value = located.value
    return {k: _plain(one) for k, one in value.items()} if isinstance(value, dict) else value
