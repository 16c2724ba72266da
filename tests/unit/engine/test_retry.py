"""When a failed job is run again."""

import logging
import random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import runtime
from penstock.engine.retry import backoff_of, reconnect_delay, retry_delay
from penstock.model.settings import EngineConfig

seconds = st.floats(0.001, 1e6)


@given(attempt=st.integers(1, 5000), base=seconds, cap=seconds)
def test_retry_waits_between_nothing_and_the_doubling_ceiling(
    attempt: int, base: float, cap: float
) -> None:
    settings = EngineConfig(retry_base_seconds=base, retry_cap_seconds=cap)
    ceiling = min(cap, base * 2.0 ** min(attempt - 1, 100))

    assert 0 <= retry_delay(attempt, settings) <= ceiling


@pytest.mark.parametrize(("attempt", "ceiling"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300)])
def test_jitter_is_full(monkeypatch: pytest.MonkeyPatch, attempt: int, ceiling: float) -> None:
    """Delays fill the whole range evenly, so jobs that failed together spread out."""
    monkeypatch.setattr(runtime, "uniform", random.Random(1).uniform)
    delays = [retry_delay(attempt, EngineConfig()) for _ in range(4000)]

    assert min(delays) < 0.01 * ceiling
    assert 0.99 * ceiling < max(delays) <= ceiling
    assert fmean(delays) == pytest.approx(ceiling / 2, rel=0.05)
    assert sum(delay < ceiling / 4 for delay in delays) == pytest.approx(1000, rel=0.15)


def test_retry_after_very_many_attempts_is_capped() -> None:
    assert retry_delay(100_000, EngineConfig()) <= 300


@given(failures=st.integers(1, 5000), first=seconds, cap=seconds)
def test_reconnect_waits_at_least_half_of_its_ceiling(
    failures: int, first: float, cap: float
) -> None:
    settings = EngineConfig(reconnect_first_seconds=first, reconnect_cap_seconds=cap)
    ceiling = min(cap, first * 2.0 ** min(failures - 1, 100))

    assert ceiling / 2 <= reconnect_delay(failures, settings) <= ceiling


def test_reconnect_starts_at_a_tenth_of_a_second_and_never_waits_over_two() -> None:
    assert 0.05 <= reconnect_delay(1, EngineConfig()) <= 0.1
    assert all(1 <= reconnect_delay(n, EngineConfig()) <= 2 for n in range(6, 200))


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (30, [30, 30, 30]),
        ([0, 10, 60], [0, 10, 60, 60, 60]),
        (lambda attempt: 5 * attempt, [5, 10, 15]),
    ],
    ids=["always", "listed", "computed"],
)
def test_own_backoff_of_a_kind_goes_before_the_settings(backoff: Any, delays: list[float]) -> None:
    own = backoff_of("work", backoff)

    assert [retry_delay(n, EngineConfig(), own) for n in range(1, len(delays) + 1)] == delays


@pytest.mark.parametrize(
    "backoff",
    [lambda n: -n, lambda n: None, lambda n: "5", lambda n: float("inf"), lambda n: n / 0],
    ids=["negative", "None", "text", "infinite", "raises"],
)
def test_backoff_that_cannot_be_used_is_told_and_replaced(
    caplog: pytest.LogCaptureFixture, backoff: Any
) -> None:
    with caplog.at_level(logging.ERROR, "penstock"):
        assert 0 <= retry_delay(1, EngineConfig(), backoff_of("work", backoff)) <= 1
    assert "backoff function of 'work'" in caplog.text
