"""Configuration of name masking: which names, and what finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import ConfigError
from penstock.model.section import setting

NAME_KINDS = ("person", "location", "organization")


@dataclass(slots=True, frozen=True)
class NamesConfig:
    """Masking of the names of people, and optionally of places and organizations, with spaCy."""

    models: Mapping[str, str] = setting(example="{en: en_core_web_sm}")
    """Language -> spaCy model, by package name or path. Every model reads the whole text."""
    kinds: tuple[str, ...] = setting(("person",), example="[person, location]")
    """Kinds of names to mask: `person`, `location`, `organization`."""
    labels: Mapping[str, str] = setting(dict, example='{person: "[NAME]"}')
    """Kind -> replacement. Default: `[PERSON]` and so on."""

    def __post_init__(self) -> None:
        if not self.models:
            raise ConfigError(
                "models must name one at least, such as {en: en_core_web_sm}", setting="models"
            )
        if not self.kinds:
            raise ConfigError(
                f"kinds must name one at least of: {', '.join(NAME_KINDS)}", setting="kinds"
            )
        for kind in (*self.kinds, *self.labels):
            if kind not in NAME_KINDS:
                raise ConfigError(f"there is no kind {kind!r}; there are: {', '.join(NAME_KINDS)}")

    def beside(self, folder: Path) -> NamesConfig:
        """The same, with models that are folders found from `folder`."""
        models = {
            language: str(folder / Path(model).expanduser()) if "/" in model else model
            for language, model in self.models.items()
        }
        return replace(self, models=models)
