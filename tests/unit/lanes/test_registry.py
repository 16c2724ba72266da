"""Which limits a lane has: as configured, by pattern, or the safe default."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from penstock import LaneConfig
from penstock.errors import ConfigError
from penstock.lanes import registry
from penstock.lanes.registry import LaneRegistry
from penstock.model.lane import BUILT_IN


def built_in(name: str) -> LaneConfig:
    return replace(BUILT_IN[name], assumed=True)


def test_built_in_lanes_are_there_without_a_word() -> None:
    lanes = LaneRegistry()
    assert lanes.config("openalex") == built_in("openalex")
    assert lanes.config("host:example.org") == built_in("host:*")
    assert lanes.config("llm.draw") == built_in("llm.*")


def test_name_itself_goes_before_a_pattern_that_matches_it() -> None:
    assert LaneRegistry().config("llm.ingest") == built_in("llm.ingest")


def test_longest_pattern_wins() -> None:
    lanes = LaneRegistry(
        {"host:*.gov": {"max_parallel": 1, "parent": "fetch"}, "*": {"max_parallel": 9}}
    )
    assert lanes.config("host:data.gov").max_parallel == 1
    assert lanes.config("host:example.org").max_parallel == BUILT_IN["host:*"].max_parallel
    assert lanes.config("anything").max_parallel == 9


def test_what_is_given_for_a_built_in_lane_changes_only_that() -> None:
    lanes = LaneRegistry({"openalex": {"max_parallel": 5}, "host:*": {"max_parallel": 1}})
    assert lanes.config("openalex").max_parallel == 5
    assert lanes.config("openalex").spacing == BUILT_IN["openalex"].spacing
    host = lanes.config("host:example.org")
    assert (host.max_parallel, host.parent) == (1, "fetch")


def test_rate_that_is_given_is_not_held_back_by_the_interval_of_the_built_in_lane() -> None:
    lanes = LaneRegistry({"openalex": {"requests_per_interval": 100}})
    assert lanes.config("openalex").spacing == pytest.approx(0.0102)


def test_interval_that_is_given_binds_beside_the_rate_of_the_built_in_lane() -> None:
    lanes = LaneRegistry({"openalex": {"min_interval_seconds": 2.0}})
    assert lanes.config("openalex").spacing == pytest.approx(2.04)
    lanes = LaneRegistry({"openalex": {"min_interval_seconds": 0.001}})
    assert lanes.config("openalex").spacing == BUILT_IN["openalex"].spacing


def test_lane_of_a_pattern_keeps_what_is_not_given_for_it() -> None:
    lanes = LaneRegistry(
        {
            "llm.draw": {"timeout_seconds": 120.0},
            "host:slow.example": {"min_interval_seconds": 10.0},
            "host:*": {"max_parallel": 7},
        }
    )
    draw = lanes.config("llm.draw")
    assert (draw.parent, draw.max_parallel, draw.timeout_seconds) == ("llm", 4, 120.0)
    slow = lanes.config("host:slow.example")
    assert (slow.parent, slow.max_parallel, slow.credentials) == ("fetch", 7, False)
    assert slow.min_interval_seconds == 10.0


def test_what_somebody_configured_is_told_from_what_is_assumed() -> None:
    lanes = LaneRegistry({"openalex": {"max_parallel": 5}, "host:*.gov": {"max_parallel": 1}})
    assert lanes.configured("openalex")
    assert lanes.configured("host:data.gov")
    assert not lanes.configured("crossref")
    assert lanes.knows("crossref")
    assert not lanes.configured("mystery")
    assert not lanes.knows("mystery")


def test_configuration_in_code_is_taken_as_it_is() -> None:
    config = LaneConfig(min_interval_seconds=9.0)
    assert LaneRegistry({"openalex": config}).config("openalex") == config


def test_one_registry_does_not_change_another() -> None:
    LaneRegistry({"openalex": {"max_parallel": 5}})
    assert LaneRegistry().config("openalex") == built_in("openalex")


def test_lane_nobody_configured_gets_the_safe_default_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lanes = LaneRegistry()
    with caplog.at_level(logging.WARNING, "penstock.lanes"):
        assert [lanes.config("mystery") for _ in range(3)] == [LaneConfig(assumed=True)] * 3
        lanes.config("openalex")
        lanes.config("host:example.org")

    (record,) = caplog.records
    assert "'mystery' is not configured" in record.getMessage()


@pytest.mark.parametrize(
    ("lanes", "message"),
    [
        ({"a": {"max_parallel": 0}}, "lane 'a': max_parallel"),
        ({"a": {"colour": "red"}}, "lane 'a': unknown key 'colour'"),
        ({"a": {"parent": "nowhere"}}, "lane 'a': its parent 'nowhere' is not configured"),
        ({"a": {"parent": "llm.ingest"}}, "lane 'a': its parent 'llm.ingest' has a parent"),
        ({"a": {"parent": "a"}}, "lane 'a': its parent 'a'"),
        ({"a": {"parent": "b"}, "b": {"parent": "a"}}, "its parent"),
    ],
)
def test_mistakes_are_refused_and_name_the_lane(
    lanes: dict[str, dict[str, object]], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        LaneRegistry(lanes)


def test_named_lanes_are_those_that_are_no_patterns() -> None:
    named = LaneRegistry({"mine": {"max_parallel": 1}}).named()
    assert "mine" in named
    assert "host:*" not in named
    assert {"openalex", "embedder", "fetch"} <= named.keys()


def test_profile_applies_where_its_credential_is_set() -> None:
    given = {"openalex": {"profiles": {"OPENALEX_KEY": {"requests_per_interval": 100}}}}
    assert LaneRegistry(given, {}).config("openalex").requests_per_interval == 10
    with_key = LaneRegistry(given, {"OPENALEX_KEY": "k"}).config("openalex")
    assert with_key.requests_per_interval == 100
    assert with_key.max_parallel == BUILT_IN["openalex"].max_parallel


def test_pace_that_is_asked_for_binds_until_it_is_not_and_never_makes_a_lane_faster() -> None:
    lanes = LaneRegistry({"host:slow.example": {"min_interval_seconds": 60.0}})
    lanes.pace("host:a.example", 0.0)
    assert lanes.config("host:a.example") == built_in("host:*"), "nothing was asked for"
    lanes.pace("host:a.example", 10.0)
    paced = lanes.config("host:a.example")
    assert (paced.min_interval_seconds, paced.max_parallel, paced.assumed) == (10.0, 2, False)
    assert lanes.config("host:b.example") == built_in("host:*")
    lanes.pace("host:a.example", 0.0)
    assert lanes.config("host:a.example").min_interval_seconds == 1.0
    lanes.pace("host:slow.example", 10.0)
    assert lanes.config("host:slow.example").min_interval_seconds == 60.0


def test_only_so_many_paces_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_PACED", 2)
    lanes = LaneRegistry()
    for name in ("host:a", "host:b", "host:a", "host:c"):
        lanes.pace(name, 5.0)
    spacings = [lanes.config(f"host:{one}").min_interval_seconds for one in "abc"]
    assert spacings == [5.0, 1.0, 5.0]
