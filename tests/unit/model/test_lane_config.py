"""What can be said of a lane, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.model.lane import BUILT_IN, SPARE, LaneConfig
from penstock.model.llm import ROLES


def test_rate_and_minimum_interval_both_bind() -> None:
    by_rate = LaneConfig(requests_per_interval=10, interval_seconds=1.0, min_interval_seconds=0.01)
    by_gap = LaneConfig(requests_per_interval=10, interval_seconds=1.0, min_interval_seconds=0.5)

    assert by_rate.spacing == pytest.approx(0.1 * SPARE)
    assert by_gap.spacing == pytest.approx(0.5 * SPARE)


def test_where_only_one_is_given_the_other_follows() -> None:
    assert LaneConfig(requests_per_interval=4, interval_seconds=1.0).spacing == pytest.approx(
        0.25 * SPARE
    )
    assert LaneConfig(min_interval_seconds=3.0).spacing == pytest.approx(3.0 * SPARE)


def test_nothing_known_is_a_tenth_of_a_second_and_few_at_a_time() -> None:
    unknown = LaneConfig()
    assert 0.1 <= unknown.spacing <= 0.105
    assert 1 <= unknown.parallel <= 2


def test_interval_of_nothing_means_no_rate() -> None:
    assert LaneConfig(min_interval_seconds=0.0).spacing == 0.0


def test_without_a_rate_no_start_is_late_and_none_has_to_be_taken_again() -> None:
    """There is no next one to crowd; a busy event loop is late by more than 5 ms now and then."""
    assert LaneConfig(min_interval_seconds=0.0).tolerance >= 1.0


@given(requests=st.integers(1, 1000), interval=st.floats(0.5, 3600.0))
def test_start_as_late_as_allowed_crowds_no_window(requests: int, interval: float) -> None:
    """The first of n + 1 starts is as late as it may be, the last on time."""
    config = LaneConfig(requests_per_interval=requests, interval_seconds=interval)
    assert requests * config.spacing - config.tolerance > interval


@pytest.mark.parametrize(
    "values",
    [
        {"requests_per_interval": 0, "interval_seconds": 1.0},
        {"requests_per_interval": -1, "interval_seconds": 1.0},
        {"requests_per_interval": 1.5, "interval_seconds": 1.0},
        {"requests_per_interval": 5},
        {"interval_seconds": 5.0},
        {"requests_per_interval": 5, "interval_seconds": 0.0},
        {"interval_seconds": float("inf"), "requests_per_interval": 1},
        {"min_interval_seconds": -0.1},
        {"min_interval_seconds": float("nan")},
        {"min_interval_seconds": "1"},
        {"min_interval_seconds": True},
        {"max_parallel": 0},
        {"max_parallel": 1.5},
        {"max_parallel": True},
        {"requests_per_day": 0},
        {"timeout_seconds": 0.0},
        {"timeout_seconds": [1]},
        {"breaker_first_seconds": 0.0},
        {"breaker_cap_seconds": -1.0},
        {"probe_seconds": 0.0},
        {"parent": 5},
        {"health_url": 5},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_named(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        LaneConfig(**values)
    assert any(name in str(caught.value) for name in values)


@pytest.mark.parametrize("name", ["breaker_first_seconds", "breaker_cap_seconds", "probe_seconds"])
def test_time_that_is_always_needed_cannot_be_left_empty(name: str) -> None:
    """As in YAML: `probe_seconds:` with nothing behind it."""
    with pytest.raises(ConfigError, match=name):
        LaneConfig().with_changes({name: None})


def test_changes_keep_the_rest() -> None:
    changed = BUILT_IN["openalex"].with_changes({"max_parallel": 7})
    assert changed.max_parallel == 7
    assert changed.spacing == BUILT_IN["openalex"].spacing


def test_unknown_key_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(ConfigError, match=r"max_paralel.*max_parallel"):
        LaneConfig().with_changes({"max_paralel": 1})


def test_services_people_use_most_keep_to_their_published_limits() -> None:
    scholar, openalex = BUILT_IN["semantic_scholar"], BUILT_IN["openalex"]
    assert (scholar.requests_per_interval, scholar.interval_seconds) == (100, 300.0)
    assert scholar.spacing >= 3.0
    assert scholar.parallel == 1
    assert (openalex.requests_per_interval, openalex.interval_seconds) == (10, 1.0)
    assert openalex.spacing >= 0.1
    assert openalex.parallel == 2
    for name in ("crossref", "arxiv", "embedder", "browser", "llm", "fetch"):
        assert name in BUILT_IN
    assert BUILT_IN["llm.*"].parent == BUILT_IN["llm.ingest"].parent == "llm"
    assert BUILT_IN["host:*"].parent == "fetch"


def test_no_phase_of_an_answer_can_take_the_places_of_another() -> None:
    phases = [BUILT_IN[f"llm.{role}"] for role in ROLES]
    assert {phase.parent for phase in phases} == {"llm"}
    assert sum(phase.parallel for phase in phases) <= BUILT_IN["llm"].parallel
    assert all(phase.timeout_seconds is not None for phase in phases)
