"""Configuration of the language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.errors import ConfigError
from penstock.model.endpoint import check_base_url, check_variable

PHASES = ("plan", "search", "answer")
"""Of an answer."""
ROLES = ("ingest", *PHASES)
"""What models are used for; each has its lane, `llm.ingest` and so on."""


@dataclass(slots=True, frozen=True)
class ModelConfig:
    """The model of one role. Missing keys are inherited from the section, unless the model has its
    own `base_url`: a key is sent only to the server it was configured for."""

    SHORTHAND: ClassVar[str] = "model"
    """What a text alone, in place of a mapping, is."""

    model: str
    """Name of the model on its server."""
    base_url: str | None = None
    """URL of its server. Default: that of the section."""
    key_variable: str | None = None
    """Environment variable that holds its API key."""
    reasoning: bool | None = None
    """Whether it is a reasoning model: it is sent `reasoning_effort` and `max_completion_tokens`
    instead of `temperature` and `max_tokens`, which some of these models reject."""

    def __post_init__(self) -> None:
        check_base_url(self.base_url)
        check_variable("key_variable", self.key_variable, "LLM_KEY")


@dataclass(slots=True, frozen=True)
class ServedModel:
    """A model, where it is, and how it is asked."""

    name: str
    base_url: str
    key_variable: str | None = None
    reasoning: bool = False


@dataclass(slots=True, frozen=True)
class LlmConfig:
    """Language models, on any server with OpenAI's `/v1/chat/completions`. None by default."""

    base_url: str | None = None
    """URL of the server, such as `http://localhost:8080/v1`."""
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    """Models by role (`ingest`, `plan`, `search`, `answer`): a name, or a mapping. `plan` and
    `search` default to the model of `answer`."""
    key_variable: str | None = None
    """Environment variable that holds the API key, such as `LLM_KEY`. Default: no key is sent."""
    reasoning: bool = False
    """Whether these are reasoning models; see below."""

    def __post_init__(self) -> None:
        check_base_url(self.base_url)
        check_variable("key_variable", self.key_variable, "LLM_KEY")
        for role, model in self.models.items():
            if role not in ROLES:
                raise ConfigError(
                    f"models has no {role!r}; there are: {', '.join(ROLES)}",
                    setting=f"models.{role}",
                )
            if self.base_url is None and model.base_url is None:
                raise ConfigError("models need base_url, such as http://localhost:8080/v1")
        if "answer" not in self.models and any(role in self.models for role in PHASES):
            raise ConfigError("models for plan and search are of no use without one for answer")

    def model(self, role: str) -> ServedModel | None:
        """That of a role, or None."""
        own = self.models.get(role)
        if own is None:
            return self.model("answer") if role in ("plan", "search") else None
        if own.base_url is not None:
            return ServedModel(own.model, own.base_url, own.key_variable, bool(own.reasoning))
        assert self.base_url is not None
        reasoning = self.reasoning if own.reasoning is None else own.reasoning
        key_variable = own.key_variable or self.key_variable
        return ServedModel(own.model, self.base_url, key_variable, reasoning)
