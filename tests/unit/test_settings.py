"""Every number the engine goes by has limits."""

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from penstock.errors import ConfigError
from penstock.model.settings import Settings

NUMBERS = [field.name for field in fields(Settings) if field.type not in ("bool", "str")]


def test_defaults_are_those_of_the_design() -> None:
    settings = Settings()

    assert (settings.max_workers, settings.internal_queue) == (10, 100)
    assert (settings.lease_seconds, settings.prefetch_seconds) == (15, 5)
    assert (settings.job_timeout, settings.max_retries, settings.grace_seconds) == (60, 3, 25)
    assert settings.retention_seconds == 7 * 86400
    assert settings.durable


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), float("-inf")])
def test_impossible_number_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(Settings(), **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_workers", "internal_queue", "lease_seconds"])
def test_nothing_runs_on_zero_of_these(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(Settings(), **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["poll_seconds", "upkeep_seconds", "reconnect_first_seconds"])
def test_pause_of_nothing_would_be_a_hot_loop(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(Settings(), **{name: 0})  # type: ignore[arg-type]


def test_more_workers_than_a_process_can_have_are_refused() -> None:
    assert Settings(max_workers=1000).max_workers == 1000
    with pytest.raises(ConfigError, match="more processes"):
        Settings(max_workers=1001)


@pytest.mark.parametrize("name", ["max_retries", "retry_base_seconds", "grace_seconds"])
def test_zero_is_allowed_where_it_means_something(name: str) -> None:
    assert getattr(replace(Settings(), **{name: 0}), name) == 0  # type: ignore[arg-type]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().max_workers = 5  # type: ignore[misc]


@pytest.mark.parametrize("contact", ["me@example.org\r\nx: y", "a b", "a(b)", "é@example.org"])
def test_contact_that_would_break_a_header_is_refused(contact: str) -> None:
    assert Settings(contact="https://example.org/about?a=b").contact
    with pytest.raises(ConfigError, match="contact"):
        Settings(contact=contact)
