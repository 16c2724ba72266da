"""Every number in a section has limits."""

from dataclasses import FrozenInstanceError, replace

import pytest

from penstock.errors import ConfigError
from penstock.model.section import types
from penstock.model.server import ServerConfig
from penstock.model.service_settings import AnswersConfig, DocumentsConfig, ResearchConfig
from penstock.model.settings import EngineConfig, OutboundConfig

SECTIONS = (EngineConfig, DocumentsConfig, ResearchConfig, AnswersConfig, ServerConfig)
NUMBERS = [
    (section, name)
    for section in SECTIONS
    for name, kind in types(section).items()
    if kind in (int, float)
]


def test_defaults_are_those_of_the_design() -> None:
    settings = EngineConfig()

    assert (settings.max_workers, settings.internal_queue) == (10, 100)
    assert (settings.lease_seconds, settings.prefetch_seconds) == (15, 5)
    assert (settings.job_timeout, settings.max_retries, settings.grace_seconds) == (60, 3, 25)
    assert settings.retention_seconds == 7 * 86400
    assert settings.durable


@pytest.mark.parametrize(("section", "name"), NUMBERS)
@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), float("-inf")])
def test_impossible_number_is_refused_by_name(section: type, name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name) as refusal:
        section(**{name: value})
    assert refusal.value.setting == name


@pytest.mark.parametrize("name", ["max_workers", "internal_queue", "lease_seconds"])
def test_nothing_runs_on_zero_of_these(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(EngineConfig(), **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["poll_seconds", "upkeep_seconds", "reconnect_first_seconds"])
def test_pause_of_nothing_would_be_a_hot_loop(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(EngineConfig(), **{name: 0})  # type: ignore[arg-type]


def test_more_workers_than_a_process_can_have_are_refused() -> None:
    assert EngineConfig(max_workers=1000).max_workers == 1000
    with pytest.raises(ConfigError, match="more processes"):
        EngineConfig(max_workers=1001)


@pytest.mark.parametrize("name", ["max_retries", "retry_base_seconds", "grace_seconds"])
def test_zero_is_allowed_where_it_means_something(name: str) -> None:
    assert getattr(replace(EngineConfig(), **{name: 0}), name) == 0  # type: ignore[arg-type]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        EngineConfig().max_workers = 5  # type: ignore[misc]


@pytest.mark.parametrize("contact", ["me@example.org\r\nx: y", "a b", "a(b)", "é@example.org"])
def test_contact_that_would_break_a_header_is_refused(contact: str) -> None:
    assert OutboundConfig(contact="https://example.org/about?a=b").contact
    with pytest.raises(ConfigError, match="contact"):
        OutboundConfig(contact=contact)
