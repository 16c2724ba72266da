"""The sections of a config file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from penstock.config.rate_limits import check_no_apis
from penstock.config.yaml_file import Located, read_mapping
from penstock.errors import ConfigError
from penstock.model.browser import BROWSER_KEYS, ENGINE_KEYS, BrowserConfig, EngineConfig
from penstock.model.embedder import KEYS as EMBEDDER_KEYS
from penstock.model.embedder import EmbedderConfig
from penstock.model.intake import KEYS as KAFKA_KEYS
from penstock.model.intake import KafkaConfig
from penstock.model.lane import KEYS, PROFILES, check_value
from penstock.model.librarian import KEYS as LIBRARIAN_KEYS
from penstock.model.librarian import LibrarianConfig
from penstock.model.llm import KEYS as LLM_KEYS
from penstock.model.llm import MODEL_KEYS, ROLES, LlmConfig, ModelConfig
from penstock.model.llm import check_value as check_llm_value
from penstock.model.providers import KEYS as PROVIDER_KEYS
from penstock.model.providers import ProviderConfig, check_provider
from penstock.model.server import KEYS as SERVER_KEYS
from penstock.model.server import ServerConfig

KAFKA_BOOTSTRAP = "KAFKA_BOOTSTRAP"
LLM_VARIABLES = {
    "_".join(filter(None, ("PENSTOCK_LLM", role.upper(), key.upper()))): (role, key)
    for role in ("", *ROLES)
    for key in (MODEL_KEYS if role else LLM_KEYS)
    if key != "models"
}
"""variable -> (role, key); role '' is the section itself."""


def read_lanes(
    section: Located | None, folder: Path
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """name -> what is configured, checked key by key; and name -> where it stands. The section may
    name a file instead."""
    if section is None:
        return {}, {}
    if isinstance(section.value, str):
        lanes = read_mapping(folder / section.value)
        check_no_apis(lanes, folder / section.value)
        inner = lanes.get("lanes")
        if len(lanes) == 1 and inner is not None and not _is_lane(inner):
            # A whole `lanes` section, such as `lanes import` writes.
            lanes = _mapping(inner, "lanes", "a mapping of lanes")
    else:
        lanes = _mapping(section, "lanes", "a mapping of lanes, or the name of a file with one")
    read = {name: _read_lane(name, lane) for name, lane in lanes.items()}
    return read, {name: lane.source for name, lane in lanes.items()}


def _is_lane(one: Located) -> bool:
    """Whether it is the limits of a lane, and not a mapping of lanes."""
    return isinstance(one.value, dict) and not {*KEYS, PROFILES}.isdisjoint(one.value)


def _read_lane(name: str, lane: Located) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, located in _mapping(lane, f"lane {name}", "a mapping of limits").items():
        if key == PROFILES:
            profiles = _mapping(located, f"lane {name}: profiles", "a mapping by variable")
            read[key] = {variable: _read_lane(name, one) for variable, one in profiles.items()}
            continue
        if key not in KEYS:
            raise _unknown(f"lane {name}", key, located, KEYS)
        try:
            check_value(key, located.value)
        except ConfigError as error:
            raise ConfigError(f"{located.source}: lane {name}: {error}") from None
        read[key] = located.value
    return read


def read_weights(section: Located) -> dict[str, float]:
    """tenant -> how many turns it gets for one of a tenant with weight 1."""
    weights = {}
    for tenant, located in _mapping(section, "tenant_weights", "tenant: weight").items():
        weight = located.value
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1e6:
            raise ConfigError(f"{located.source}: the weight of {tenant} must be over 0")
        weights[tenant] = float(weight)
    return weights


def read_embedder(section: Located) -> EmbedderConfig:
    given: dict[str, Any] = {}
    for key, located in _mapping(section, "embedder", "a mapping of its settings").items():
        if key not in EMBEDDER_KEYS:
            raise _unknown("embedder", key, located, EMBEDDER_KEYS)
        whole = key == "dimensions"
        fits = isinstance(located.value, int if whole else str) and located.value is not True
        if not fits:
            what = "a whole number" if whole else "a text"
            raise ConfigError(f"{located.source}: embedder: {key} must be {what}")
        given[key] = located.value
    try:
        return EmbedderConfig(**given)
    except ConfigError as error:
        raise ConfigError(f"{section.source}: embedder: {error}") from None


def read_server(section: Located) -> ServerConfig:
    given: dict[str, Any] = {}
    for key, located in _mapping(section, "server", "a mapping of its settings").items():
        if key not in SERVER_KEYS:
            raise _unknown("server", key, located, SERVER_KEYS)
        given[key] = _value("server", key, SERVER_KEYS[key], located)
    try:
        return ServerConfig(**given)
    except ConfigError as error:
        raise ConfigError(f"{section.source}: server: {error}") from None


def read_librarian(section: Located) -> LibrarianConfig:
    given: dict[str, Any] = {}
    for key, located in _mapping(section, "librarian", "a mapping of its settings").items():
        if key not in LIBRARIAN_KEYS:
            raise _unknown("librarian", key, located, LIBRARIAN_KEYS)
        given[key] = _value("librarian", key, LIBRARIAN_KEYS[key], located)
    try:
        return LibrarianConfig(**given)
    except ConfigError as error:
        raise ConfigError(f"{section.source}: librarian: {error}") from None


def _value(section: str, key: str, annotation: str, located: Located) -> Any:
    """A value of the type that `annotation` names."""
    value, kind = located.value, annotation.removesuffix(" | None")
    if kind.startswith("tuple"):
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        raise ConfigError(f"{located.source}: {section}: {key} must be a list of texts")
    types: dict[str, Any] = {"str": str, "int": int, "float": (int, float), "bool": bool}
    words = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}
    if not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "bool"):
        raise ConfigError(f"{located.source}: {section}: {key} must be {words[kind]}")
    return value


def read_fetch(section: Located) -> str:
    """The setting `fetch_allow`, from the list `allow`."""
    items: list[str] = []
    for key, located in _mapping(section, "fetch", "a mapping with `allow`").items():
        if key != "allow":
            raise ConfigError(f"{located.source}: fetch has no key {key!r}; there is: allow")
        given = located.value if isinstance(located.value, list) else [located.value]
        if not all(isinstance(one, str) and one for one in given):
            raise ConfigError(f"{located.source}: fetch: allow must be a list of host:port")
        items += given
    return ",".join(items)


def read_llm(
    section: Located | None, environment: Mapping[str, str]
) -> tuple[LlmConfig, dict[str, str]]:
    """The models, and where each value came from, by its name: `llm.models.plan.base_url`. The
    environment wins: `PENSTOCK_LLM_BASE_URL`, `PENSTOCK_LLM_PLAN_MODEL` and the like."""
    given = {} if section is None else _llm_of_file(section)
    for variable, (role, key) in LLM_VARIABLES.items():
        if environment.get(variable):
            value = Located(environment[variable], f"environment {variable}")
            given.setdefault(role, {})[key] = value
    sources = {
        ".".join(filter(None, ("llm", role and f"models.{role}", key))).removesuffix(".model"): (
            located.source
        )
        for role, keys in given.items()
        for key, located in keys.items()
    }
    own = given.pop("", {})
    values = {key: _llm_value(key, located) for key, located in own.items()}
    models = {role: _read_model(role, keys) for role, keys in given.items()}
    try:
        return LlmConfig(**values, models=models), sources
    except ConfigError as error:
        source = section.source if section else next(iter(sources.values()))
        raise ConfigError(f"{source}: llm: {error}") from None


def _llm_of_file(section: Located) -> dict[str, dict[str, Located]]:
    """By role, then key; '' is the section itself. A name alone is a mapping with that model."""
    own = dict(_mapping(section, "llm", "a mapping of its settings"))
    for key, located in own.items():
        if key not in LLM_KEYS:
            raise _unknown("llm", key, located, LLM_KEYS)
    models = own.pop("models", Located(None, section.source))
    given = {"": own}
    for role, one in _mapping(models, "llm: models", "models by what they are used for").items():
        given[role] = one.value if isinstance(one.value, dict) else {"model": one}
        for key, located in given[role].items():
            if key not in MODEL_KEYS:
                raise _unknown(f"llm: models.{role}", key, located, MODEL_KEYS)
    return given


def _read_model(role: str, keys: Mapping[str, Located]) -> ModelConfig:
    name = f"models.{role}"
    values = {key: _llm_value(key, located, f"{name}.") for key, located in keys.items()}
    if "model" not in values:
        source = "".join(f"{located.source}: " for located in list(keys.values())[:1])
        raise ConfigError(f"{source}llm: {name} has no model: `model` is its name")
    return ModelConfig(**values)


def _llm_value(key: str, located: Located, under: str = "") -> Any:
    name = f"llm: {under}{key}"
    if key == "reasoning":
        switches = {"true": True, "1": True, "false": False, "0": False}
        value = switches.get(str(located.value).lower())
        if value is None:
            raise ConfigError(f"{located.source}: {name} must be true or false")
        return value
    text = _text(name.removesuffix(".model"), located)
    try:
        check_llm_value(key, text)
    except ConfigError as error:
        raise ConfigError(f"{located.source}: llm: {under}{error}") from None
    return text


def read_providers(section: Located) -> dict[str, ProviderConfig]:
    """name -> what is configured for it."""
    providers = _mapping(section, "providers", "a mapping of search providers")
    return {name: _read_provider(name, one) for name, one in providers.items()}


def _read_provider(name: str, provider: Located) -> ProviderConfig:
    given: dict[str, str] = {}
    for key, located in _mapping(provider, f"provider {name}", "a mapping of settings").items():
        if key not in PROVIDER_KEYS:
            hint = f"there are: {', '.join(PROVIDER_KEYS)}"
            raise ConfigError(f"{located.source}: provider {name} has no key {key!r}; {hint}")
        given[key] = _text(f"provider {name}: {key}", located)
    try:
        config = ProviderConfig(**given)
        check_provider(name, config)
    except ConfigError as error:
        raise ConfigError(f"{provider.source}: provider {name}: {error}") from None
    return config


def read_intake(
    section: Located | None, environment: Mapping[str, str]
) -> tuple[KafkaConfig, dict[str, str]]:
    """What is set up for Kafka, and where each value came from, by its name."""
    config = KafkaConfig()
    sources: dict[str, str] = {}
    if section is not None:
        for name, kafka in _mapping(section, "intake", "a mapping with `kafka`").items():
            if name != "kafka":
                raise ConfigError(f"{kafka.source}: intake has no key {name!r}; there is: kafka")
            config, sources = _read_kafka(kafka)
    if environment.get(KAFKA_BOOTSTRAP):
        config = replace(config, bootstrap=environment[KAFKA_BOOTSTRAP])
        sources["intake.kafka.bootstrap"] = f"environment {KAFKA_BOOTSTRAP}"
    return config, sources


def _read_kafka(kafka: Located) -> tuple[KafkaConfig, dict[str, str]]:
    where = "intake: kafka"
    given: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, located in _mapping(kafka, where, "a mapping of its settings").items():
        if key not in KAFKA_KEYS:
            raise _unknown(where, key, located, KAFKA_KEYS)
        sources[f"intake.kafka.{key}"] = located.source
        if key in ("options", "option_variables"):
            options = _mapping(located, f"{where}: {key}", "a mapping by the names of options")
            given[key] = {name: _option(f"{where}: {name}", one) for name, one in options.items()}
        else:
            given[key] = _value(where, key, KAFKA_KEYS[key], located)
    try:
        return KafkaConfig(**given), sources
    except ConfigError as error:
        raise ConfigError(f"{kafka.source}: {where}: {error}") from None


def _option(name: str, located: Located) -> str:
    """As librdkafka wants it. What it is may be a secret, and is not told."""
    match located.value:
        case bool():
            return str(located.value).lower()
        case str() | int() | float():
            return str(located.value)
        case _:
            raise ConfigError(f"{located.source}: {name} must be a text or a number")


def read_browser(section: Located) -> BrowserConfig:
    given: dict[str, Any] = {}
    for key, located in _mapping(section, "browser", "a mapping of its settings").items():
        if key == "engines":
            engines = _mapping(located, "browser: engines", "a mapping of search engines")
            given[key] = {name: _read_engine(name, one) for name, one in engines.items()}
        elif key not in BROWSER_KEYS:
            raise _unknown("browser", key, located, [*BROWSER_KEYS, "engines"])
        else:
            given[key] = _value("browser", key, BROWSER_KEYS[key], located)
    try:
        return BrowserConfig(**given)
    except ConfigError as error:
        raise ConfigError(f"{section.source}: browser: {error}") from None


def _read_engine(name: str, engine: Located) -> EngineConfig:
    where = f"browser: engine {name}"
    given: dict[str, Any] = {}
    for key, located in _mapping(engine, where, "a mapping of its settings").items():
        if key not in ENGINE_KEYS:
            raise _unknown(where, key, located, ENGINE_KEYS)
        given[key] = _value(where, key, ENGINE_KEYS[key], located)
    try:
        return EngineConfig(**given)
    except ConfigError as error:
        raise ConfigError(f"{engine.source}: {where}: {error}") from None


def with_tabs(lanes: dict[str, dict[str, Any]], browser: BrowserConfig) -> None:
    """The lane `browser` gets as many places as there are tabs, unless it is told how many."""
    lanes["browser"] = {"max_parallel": browser.tabs, **lanes.get("browser", {})}


def _text(name: str, located: Located) -> str:
    if not isinstance(located.value, str) or not located.value:
        raise ConfigError(f"{located.source}: {name} must be a text")
    return located.value


def _unknown(name: str, key: str, located: Located, known: Collection[str]) -> ConfigError:
    close = get_close_matches(key, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
    return ConfigError(f"{located.source}: {name} has no key {key!r}; {hint}")


def _mapping(located: Located, name: str, expected: str) -> dict[str, Located]:
    if located.value is None:
        return {}
    if not isinstance(located.value, dict):
        raise ConfigError(f"{located.source}: {name} must be {expected}")
    return located.value
