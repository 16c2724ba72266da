"""Settings from arguments, the environment and penstock.yaml, in that order of precedence."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from penstock.config.names import read_names
from penstock.config.rate_limits import check_no_apis
from penstock.config.sections import (
    LLM_VARIABLES,
    read_browser,
    read_embedder,
    read_fetch,
    read_intake,
    read_lanes,
    read_librarian,
    read_llm,
    read_providers,
    read_server,
    read_weights,
    with_tabs,
)
from penstock.config.yaml_file import read_mapping
from penstock.errors import ConfigError
from penstock.model.browser import BROWSER_KEYS, BrowserConfig
from penstock.model.embedder import EmbedderConfig
from penstock.model.intake import KEYS as KAFKA_KEYS
from penstock.model.intake import KafkaConfig
from penstock.model.lane import LaneConfig
from penstock.model.lane_table import resolve
from penstock.model.librarian import LibrarianConfig
from penstock.model.llm import KEYS as LLM_KEYS
from penstock.model.llm import MODEL_KEYS, LlmConfig
from penstock.model.names import NamesConfig
from penstock.model.providers import ProviderConfig, check_search_providers, provider_names
from penstock.model.server import ServerConfig
from penstock.model.settings import Settings

DEFAULT_FILE = "penstock.yaml"
DEFAULT_QUEUE = "sqlite:///penstock.db"
SECTIONS = (
    "lanes",
    "tenant_weights",
    "embedder",
    "names",
    "llm",
    "fetch",
    "server",
    "providers",
    "browser",
    "librarian",
    "intake",
)
NEARLY = 0.8
"""How much alike two names are, as difflib counts, for one to be a slip of the other."""
_TYPES = {"queue": "str"} | {f.name: str(f.type) for f in fields(Settings)}
_DEFAULTS: dict[str, Any] = {"queue": DEFAULT_QUEUE} | {f.name: f.default for f in fields(Settings)}


@dataclass(slots=True, frozen=True)
class Config:
    """Effective settings, and where each came from."""

    queue: str
    settings: Settings
    sources: Mapping[str, str]
    lanes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is configured for lanes; what is not follows from their defaults."""
    tenant_weights: Mapping[str, float] = field(default_factory=dict)
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    names: NamesConfig | None = None
    """None: names are not masked."""
    llm: LlmConfig = field(default_factory=LlmConfig)
    server: ServerConfig = field(default_factory=ServerConfig)
    providers: Mapping[str, ProviderConfig] = field(default_factory=dict)
    """What is configured for search providers; the others are as they come."""
    browser: BrowserConfig = field(default_factory=BrowserConfig)
    librarian: LibrarianConfig = field(default_factory=LibrarianConfig)
    kafka: KafkaConfig = field(default_factory=KafkaConfig)

    def rows(self) -> list[tuple[str, Any, str]]:
        """(name, value, source) of every setting, secrets hidden."""
        values = {"queue": self.queue} | {
            name: getattr(self.settings, name) for name in _TYPES if name != "queue"
        }
        values |= {name: hide_secrets(values[name]) for name in ("queue", "store", "blobs")}
        rows = [(name, values[name], self.sources[name]) for name in _TYPES]
        for lane, keys in self.lanes.items():
            rows += [(f"lanes.{lane}.{key}", keys[key], self.sources["lanes"]) for key in keys]
        for tenant, weight in self.tenant_weights.items():
            rows.append((f"tenant_weights.{tenant}", weight, self.sources["tenant_weights"]))
        rows += [
            (name, hide_secrets(value) if name.endswith("base_url") else value, self.sources[name])
            for name, value in _llm_values(self.llm).items()
            if name in self.sources
        ]
        for name, provider in self.providers.items():
            if provider.base_url is not None:
                shown_url = hide_secrets(provider.base_url)
                rows.append((f"providers.{name}.base_url", shown_url, self.sources["providers"]))
            if provider.api_key is not None:
                row = (f"providers.{name}.api_key", provider.api_key, self.sources["providers"])
                rows.append(row)
        if "browser" in self.sources:
            urls = {f"engines.{name}.url": one.url for name, one in self.browser.engines.items()}
            values = {key: getattr(self.browser, key) for key in BROWSER_KEYS} | urls
            rows += [(f"browser.{key}", values[key], self.sources["browser"]) for key in values]
        for part in fields(LibrarianConfig):
            value = getattr(self.librarian, part.name)
            if "librarian" in self.sources and value != part.default:
                rows.append((f"librarian.{part.name}", value, self.sources["librarian"]))
        rows += _kafka_rows(self.kafka, self.sources)
        for key in fields(ServerConfig):
            value = getattr(self.server, key.name)
            source = "default" if value == key.default else self.sources["server"]
            shown = ", ".join(value) if isinstance(value, tuple) else value
            rows.append((f"server.{key.name}", shown, source))
        return rows

    @property
    def warnings(self) -> list[str]:
        """What a person should know of these settings."""
        reader = self.llm.model("ingest")
        if self.settings.scans != "model" or reader is None:
            return []
        return [
            f"scans: model sends pages without text to {hide_secrets(reader.base_url)} as they "
            "are: pictures cannot be masked"
        ]


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    lanes: Mapping[str, LaneConfig | Mapping[str, Any]] | None = None,
) -> Config:
    """The effective settings. `arguments` that are None count as not given. `lanes` are those of a
    program, which win over the file's: only together do they have to make sense."""
    environment = os.environ if environment is None else environment
    values, sources = dict(_DEFAULTS), dict.fromkeys(_DEFAULTS, "default")
    path = Path(file or environment.get("PENSTOCK_CONFIG") or DEFAULT_FILE)
    named = bool(file or environment.get("PENSTOCK_CONFIG"))
    given = read_mapping(path) if named or path.exists() else {}
    check_no_apis(given, path)
    sources |= {name: given[name].source for name in SECTIONS if name in given}
    own_lanes, places = read_lanes(given.pop("lanes", None), path.parent)
    weights = read_weights(given.pop("tenant_weights")) if "tenant_weights" in given else {}
    embedder = read_embedder(given.pop("embedder")) if "embedder" in given else EmbedderConfig()
    server = read_server(given.pop("server")) if "server" in given else ServerConfig()
    if "fetch" in given and (allow := read_fetch(given["fetch"])):
        values["fetch_allow"], sources["fetch_allow"] = allow, given["fetch"].source
    given.pop("fetch", None)
    names = read_names(given.pop("names"), path.parent) if "names" in given else None
    llm, said = read_llm(given.pop("llm", None), environment)
    sources |= said
    providers = read_providers(given.pop("providers")) if "providers" in given else {}
    browser = read_browser(given.pop("browser")) if "browser" in given else BrowserConfig()
    librarian = LibrarianConfig()
    if "librarian" in given:
        librarian = read_librarian(given.pop("librarian"))
    kafka, said = read_intake(given.pop("intake", None), environment)
    sources |= said
    if "browser" in sources:
        with_tabs(own_lanes, browser)
        sources.setdefault("lanes", sources["browser"])
    resolve({**own_lanes, **(lanes or {})}, environment, places)
    for name, (value, source) in given.items():
        if name not in _TYPES:
            raise ConfigError(_unknown(name, source))
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
    _check_variables(environment)
    queue = values.pop("queue")
    try:
        settings = Settings(**values)
        check_search_providers(settings.search_providers, provider_names(providers, browser))
    except ConfigError as error:
        name = str(error).split(maxsplit=1)[0].rstrip(":")  # which they all start with
        raise ConfigError(f"{sources.get(name, 'settings')}: {error}") from None
    return Config(
        queue,
        settings,
        sources,
        own_lanes,
        weights,
        embedder,
        names,
        llm,
        server,
        providers,
        browser,
        librarian,
        kafka,
    )


def _llm_values(llm: LlmConfig) -> dict[str, Any]:
    """By name; the keys themselves are not among them, only the variables that hold them."""
    values = {f"llm.{key}": getattr(llm, key) for key in LLM_KEYS if key != "models"}
    for role, model in llm.models.items():
        name = f"llm.models.{role}"
        values |= {
            f"{name}.{key}".removesuffix(".model"): getattr(model, key) for key in MODEL_KEYS
        }
    return values


def _kafka_rows(config: KafkaConfig, sources: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    """(name, value, source) of what is set, without the values of options."""
    rows: list[tuple[str, Any, str]] = []
    for key in KAFKA_KEYS:
        name = f"intake.kafka.{key}"
        if name not in sources:
            continue
        value = getattr(config, key)
        if key == "options":
            rows += [(f"{name}.{option}", "***", sources[name]) for option in value]
        elif key == "option_variables":
            rows += [(f"{name}.{option}", value[option], sources[name]) for option in value]
        else:
            shown = ", ".join(value) if isinstance(value, tuple) else value
            rows.append((name, shown, sources[name]))
    return rows


def hide_secrets(url: str) -> str:
    """`url` without its password, wherever in it that stands."""
    parts = urlsplit(url)
    if parts.password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.split(':')[0]}:***@{host}")
    query = re.sub(r"(?i)\b([^=&]*(?:pass|secret|token|key)[^=&]*)=[^&]*", r"\1=***", parts.query)
    hidden = parts._replace(query=query)
    return url if hidden == urlsplit(url) else urlunsplit(hidden)


def _unknown(name: str, source: str) -> str:
    known = [*_TYPES, *SECTIONS]
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(known)}"
    return f"{source}: unknown setting {name!r}{hint}"


def _check_variables(environment: Mapping[str, str]) -> None:
    """ConfigError where the name of a variable is nearly that of a setting. Others may start with
    PENSTOCK_ as well: keys that the config names, what Kubernetes sets for a service."""
    variables = [*LLM_VARIABLES, *(f"PENSTOCK_{name.upper()}" for name in ("config", *_TYPES))]
    known = [variable.removeprefix("PENSTOCK_") for variable in variables]
    for variable in environment:
        name = variable.removeprefix("PENSTOCK_")
        if name == variable or name in known:
            continue
        if close := get_close_matches(name, known, n=1, cutoff=NEARLY):
            hint = f"did you mean PENSTOCK_{close[0]}?"
            raise ConfigError(f"environment {variable}: there is no such setting; {hint}")


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
