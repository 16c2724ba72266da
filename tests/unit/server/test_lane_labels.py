"""Lanes as labels of metrics: bounded, however many hosts callers name."""

from dataclasses import replace

from penstock.ports.lanes import LaneInfo
from penstock.server.metrics import MAX_OTHERS, OTHER, LaneLabels


def lane(name: str, waiting: int = 0) -> LaneInfo:
    return LaneInfo(name, "fetch", 1.0, 2, 1, waiting, "closed", None, None, None, None, 3)


def test_a_few_lanes_are_told_as_they_are() -> None:
    seen = [lane("openalex"), lane("host:a.example")]
    assert LaneLabels().bounded(seen, ["openalex"]) == seen


def test_of_many_lanes_those_that_are_configured_are_told_and_some_others() -> None:
    hosts = [lane(f"host:{n}.example", waiting=n) for n in range(1, 1001)]
    hosts[3] = replace(hosts[3], breaker="open", spacing=9.0)
    hosts[5] = replace(hosts[5], breaker="suspect", blocked_why="paused")
    told = LaneLabels().bounded([lane("openalex"), *hosts], ["openalex"])
    names = {one.name for one in told}
    assert len(names) == len(told) == MAX_OTHERS + 2
    assert {"openalex", "host:1000.example", "host:901.example", OTHER} <= names
    rest = told[-1]
    assert (rest.name, rest.in_flight, rest.max_parallel, rest.used_today) == (
        OTHER,
        900,
        1800,
        2700,
    )
    assert (rest.waiting, rest.spacing) == (sum(range(1, 901)), 9.0)
    assert (rest.breaker, rest.blocked_why) == ("open", "paused")


def test_labels_stay_the_same_whatever_comes() -> None:
    labels = LaneLabels()
    first = labels.bounded([lane(f"host:{n}") for n in range(200)], [])
    more = [lane(f"site:{n}", waiting=99) for n in range(200)]
    second = labels.bounded([*more, *(lane(f"host:{n}") for n in range(200))], [])
    assert {one.name for one in first} == {one.name for one in second}


def test_a_lane_that_is_called_other_is_told_with_the_rest() -> None:
    seen = [lane(OTHER, waiting=7), *(lane(f"host:{n}") for n in range(MAX_OTHERS + 5))]
    told = LaneLabels().bounded(seen, [OTHER])
    assert [one.waiting for one in told if one.name == OTHER] == [7]
    assert len(told) == MAX_OTHERS + 1
