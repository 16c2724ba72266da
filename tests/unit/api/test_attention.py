"""What needs attention is derived from what is seen, and each says what to do."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.api.attention import (
    in_trouble,
    needs_attention,
)
from penstock.api.overview import lane_view, process_state
from penstock.api.tenant_view import RESERVED
from penstock.model.job import JobState
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import DeadGroup, KindCounts, ProcessInfo
from penstock.wire.operators import Attention, Condition

NOW = 1_000_000.0
LANE = LaneInfo("api", None, 1.0, 2, 0, 3, "closed", None, None, None, None, 0)
PROCESS = ProcessInfo("p", "host", 7, ["work"], 10, NOW - 100, NOW - 1, NOW + 10, {})
BLOCKED = {"job": "id", "kind": "work", "since": NOW - 3, "seconds": None, "where": "app.py:3 (f)"}
OVER = {**BLOCKED, "since": NOW - 52.3, "seconds": 12.3}
DEAD = DeadGroup("work", "Boom", 12, NOW - 9000, NOW - 60, "it broke", "id")


def found(**seen: Any) -> list[Attention]:
    given = {"counts": [], "processes": [], "lanes": [], "dead": [], **seen}
    return needs_attention(NOW, **given)


def test_a_queue_where_all_is_well_needs_none() -> None:
    busy = KindCounts("work", {JobState.QUEUED: 5}, NOW - 1)
    old = replace(DEAD, last_at=NOW - 7200)
    assert found(counts=[busy], processes=[PROCESS], lanes=[LANE], dead=[old]) == []


@pytest.mark.parametrize(
    ("changes", "what", "said"),
    [
        ({"breaker": "open", "failing_since": NOW - 50}, "breaker open", "3 jobs waiting"),
        ({"breaker": "open", "probe_ok": False}, "breaker open", "check the service it depends on"),
        ({"breaker": "open", "probe_ok": True}, "breaker open", "check the errors of its jobs"),
        ({"blocked_why": "credentials"}, "credentials rejected", "penstock lanes resume api"),
        ({"blocked_why": "paused"}, "paused", "penstock lanes resume api"),
        (
            {"blocked_why": "rate limited", "blocked_until": NOW + 9},
            "rate limited",
            "automatically",
        ),
        ({"per_day": 5, "used_today": 5, "waiting": 1}, "daily limit", "1 job waiting"),
    ],
)
def test_a_lane_in_trouble(changes: dict[str, Any], what: str, said: str) -> None:
    lane = replace(LANE, **changes)
    (one,) = found(lanes=[lane])
    assert (one.what, one.subject) == (what, "api")
    assert said in one.todo
    assert one.since == changes.get("failing_since")
    assert in_trouble(lane)


@pytest.mark.parametrize(("configured", "shown"), [(0.102, "9.8"), (0.0, "no limit")])
def test_a_lane_that_429s_have_slowed_down_is_told_with_what_is_configured(
    configured: float, shown: str
) -> None:
    lane = replace(LANE, spacing=6.528, configured_spacing=configured)
    (one,) = found(lanes=[lane])
    assert (one.what, one.subject, in_trouble(lane)) == ("throttled", "api", False)
    assert f"slowed to 0.153 starts/s (configured: {shown}) after repeated 429s" in one.todo
    assert "penstock lanes reset api" in one.todo
    assert lane_view(lane).trouble == "throttled"


def test_a_suspicion_is_no_trouble_yet() -> None:
    assert not in_trouble(replace(LANE, breaker="suspect", failing_since=NOW))


@pytest.mark.parametrize(
    ("changes", "what", "state"),
    [
        ({"status": {"degraded": True}}, "queue unreachable", "degraded"),
        ({"status": {"stuck": 2}}, "worker stuck", "running"),
        ({"status": {"blocked": BLOCKED}}, "event loop blocked", "running"),
        ({"status": {"blocked": OVER}}, "event loop was blocked", "running"),
        ({"lease_until": NOW - 5}, "worker gone", "gone"),
    ],
)
def test_a_worker_process_in_trouble(changes: dict[str, Any], what: str, state: str) -> None:
    process = replace(PROCESS, **changes)
    (one,) = found(processes=[process])
    assert (one.what, one.subject) == (what, "host 7")
    assert process_state(process, NOW) == state


def test_a_kind_whose_only_worker_is_gone_has_none() -> None:
    waiting = KindCounts("work", {JobState.QUEUED: 5}, NOW - 9)
    _, one = sorted(
        found(counts=[waiting], processes=[replace(PROCESS, lease_until=NOW - 1)]),
        key=lambda one: one.what == "kind without a worker",
    )
    assert (one.what, one.subject, one.since) == ("kind without a worker", "work", NOW - 9)


def test_an_event_loop_that_goes_on_again_is_told_in_the_past_tense() -> None:
    (lasts,) = found(processes=[replace(PROCESS, status={"blocked": BLOCKED})])
    assert (lasts.since, "blocks it; no other job" in lasts.todo) == (NOW - 3, True)
    (over,) = found(processes=[replace(PROCESS, status={"blocked": OVER})])
    assert over.since is None
    assert "job id (work) blocked it for 12.3 s, until 40 s ago, at app.py:3" in over.todo


@pytest.mark.parametrize("kind", [f"{start}some" for start in RESERVED])
def test_built_in_kinds_need_no_app_to_be_worked_on(kind: str) -> None:
    (one,) = found(counts=[KindCounts(kind, {JobState.QUEUED: 1}, NOW)])
    assert one.todo.endswith(", penstock worker")
    (own,) = found(counts=[KindCounts("work", {JobState.QUEUED: 1}, NOW)])
    assert own.todo.endswith(", penstock worker MODULE:APP")


def test_groups_of_dead_letters_are_one_matter() -> None:
    groups = [replace(DEAD, error_type=f"E{n}", count=n, first_at=NOW - n) for n in range(1, 9)]
    (one,) = found(dead=groups)
    assert one.subject == "work: E8, work: E7, work: E6, 5 more"
    assert one.todo.startswith("36 failed permanently")
    assert one.since == NOW - 8


def test_the_worst_comes_first() -> None:
    seen = found(
        counts=[KindCounts("rare", {JobState.QUEUED: 1}, NOW)],
        processes=[replace(PROCESS, status={"degraded": True, "stuck": 1})],
        lanes=[replace(LANE, blocked_why="paused"), replace(LANE, breaker="open")],
        dead=[DEAD],
    )
    order = [one.what for one in seen]
    assert order == [what for what in Condition if what in order]
    assert len(order) == 6
