"""The `names` section of a config file."""

from pathlib import Path

import pytest

from penstock import config
from penstock.errors import ConfigError
from penstock.model.name_masking import NamesConfig


def load(folder: Path, text: str) -> NamesConfig | None:
    path = folder / "penstock.yaml"
    path.write_text(text)
    return config.load(file=path, environment={}).names


def test_names_are_not_masked_unless_configured(tmp_path: Path) -> None:
    assert load(tmp_path, "queue: x\n") is None


def test_section_is_read(tmp_path: Path) -> None:
    text = """\
names:
  models: {en: en_core_web_sm, ko: models/ko, ja: /opt/ja}
  kinds: [person, location]
  labels: {person: "[NAME]"}
"""
    assert load(tmp_path, text) == NamesConfig(
        {"en": "en_core_web_sm", "ko": f"{tmp_path}/models/ko", "ja": "/opt/ja"},
        ("person", "location"),
        {"person": "[NAME]"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("names: true", "line 1: names must be a mapping"),
        ("names:", "line 1: names needs models, such as {en:"),
        ("names: {kinds: [person]}", "names needs models, such as {en:"),
        ("names: {models: {}}", "models must name one at least"),
        ("names: {models: en_core_web_sm}", "models must be a mapping"),
        ("names: {models: {en: 5}}", "models: en must be a text"),
        ("names: {models: {en: x}, kinds: person}", "kinds must be a list"),
        ("names: {models: {en: x}, kinds: []}", "kinds must name one at least of: person,"),
        ("names: {models: {en: x}, kinds: [people]}", "no kind 'people'; there are: person,"),
        ("names: {models: {en: x}, labels: {people: x}}", "no kind 'people'; there are: person,"),
        ("names:\n  model: x", "line 2: names has no key 'model'; did you mean models?"),
    ],
)
def test_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    assert message in str(raised.value)
    assert str(tmp_path / "penstock.yaml") in str(raised.value)
