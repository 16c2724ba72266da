"""Forecasts of backlogs that are given, by the rules of lanes."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import Any

import pytest

from penstock.errors import ValidationError
from penstock.forecast import steady_state
from penstock.forecast.forecast import Forecast, ForecastLine
from penstock.forecast.forecaster import Forecaster
from penstock.forecast.holds import Hold
from penstock.forecast.virtual_run import VirtualRun
from penstock.forecast.what_if import parse_changes
from penstock.forecast.words import in_words
from penstock.lanes.breaker import FOR_EVER
from penstock.lanes.state import DAY, LaneState, limits_of
from penstock.model.amounts import NOTHING, Amounts
from penstock.model.lane import LaneConfig
from penstock.ports.backlog import Backlog, PastRun, RunningJob, WaitingJobs
from penstock.ports.operators import ProcessInfo
from penstock.ports.steps import NO_END

NOW = 1_800_000_000.0
FREE = {"min_interval_seconds": 0.0, "max_parallel": 100}
STATE = {field.name for field in fields(LaneState)}

Configs = Mapping[str, Mapping[str, Any]]


def lane_rows(configs: Configs, **state: Any) -> list[dict[str, Any]]:
    rows = []
    for name, given in configs.items():
        limits = limits_of(name, LaneConfig(**{**FREE, **given}))
        known = {key: value for key, value in limits.items() if key in STATE}
        rows.append(asdict(LaneState(**{**known, **state})))
    return rows


def waiting(
    kind: str,
    size: int,
    lane: str = "",
    *,
    tenant: str = "default",
    band: int = 50,
    each: Amounts = NOTHING,
    due_in: float | None = None,
    first: float = 1.0,
) -> WaitingJobs:
    amount = Amounts(*(size * part for part in each))
    if due_in is None:
        return WaitingJobs(kind, tenant, lane, band, True, size, first, first + size - 1, amount)
    at = NOW + due_in
    return WaitingJobs(kind, tenant, lane, band, False, size, at, at, amount)


def past(kind: str, lane: str, *seconds: float, attempts: int = 1) -> list[PastRun]:
    return [PastRun(kind, lane, NOW - 1, one, attempts) for one in seconds]


def process(*kinds: str, workers: int = 10, name: str = "a", **more: Any) -> ProcessInfo:
    return ProcessInfo(name, "host", 1, kinds, workers, NOW - 60, NOW, NOW + 15, **more)


def forecaster(
    jobs: Sequence[WaitingJobs],
    lanes: Configs | None = None,
    runs: Sequence[PastRun] = (),
    processes: Sequence[ProcessInfo] | None = None,
    running: Sequence[RunningJob] = (),
    rows: Sequence[Mapping[str, Any]] | None = None,
    asked: int | None = None,
    **options: Any,
) -> Forecaster:
    lanes = lanes or {}
    rows = lane_rows(lanes) if rows is None else rows
    kinds = {one.kind for one in jobs} | {one.kind for one in running}
    there = [process(*kinds)] if processes is None else processes

    def config_of(name: str) -> LaneConfig:
        return LaneConfig(**{**FREE, **lanes.get(name, {})})

    return Forecaster(
        Backlog(NOW, jobs, running, rows, runs), there, config_of, processes=asked, **options
    )


def forecast(
    *given: Any, kind: str | None = None, tenant: str | None = None, **more: Any
) -> Forecast:
    *_, told = forecaster(*given, **more).run(kind, tenant)
    assert isinstance(told, Forecast)
    return told


def seconds(one: Forecast | ForecastLine) -> float:
    assert one.done_at is not None
    return one.done_at - NOW


def test_slots_hold_up_what_they_hold_up() -> None:
    told = forecast(
        [waiting("embed", 400, "api")], {"api": {"max_parallel": 4}}, past("embed", "api", 1.0)
    )
    (line,) = told.lines
    assert 100 <= seconds(told) < 103
    assert (line.jobs, line.held_by, line.held_in) == (400, Hold.SLOTS, "api")
    assert line.per_minute == pytest.approx(240, rel=0.03)


def test_days_in_which_nothing_starts_are_passed_by() -> None:
    told = list(
        forecaster(
            [waiting("embed", 400, "api", each=Amounts(tokens=100))],
            {"api": {"tokens_per_day": 1000}},
            past("embed", "api", 0.1),
        ).run()
    )
    assert isinstance(told[-1], Forecast)
    assert seconds(told[-1]) == pytest.approx(39 * DAY - NOW % DAY, abs=60)
    assert told[-1].lines[0].held_by is Hold.DAY
    assert len(told) < 50, "not a look a second"


def test_others_get_their_turn_though_nothing_starts() -> None:
    """A job that is under way may give back what it has reserved, so the lane is looked at."""
    under_way = RunningJob("embed", "default", "api", 50, "a", NOW)
    looks = forecaster(
        [waiting("embed", 40, "api", each=Amounts(tokens=1000))],
        {"api": {"tokens_per_day": 1000}},
        past("embed", "api", 5000.0),
        running=[under_way],
    ).run()
    assert len(list(islice(looks, 4))) == 4


def test_a_rate_holds_up_what_it_holds_up() -> None:
    lanes = {"api": {"requests_per_interval": 60, "interval_seconds": 60.0}}
    told = forecast([waiting("fetch", 600, "api")], lanes, past("fetch", "api", 0.1))
    assert seconds(told) == pytest.approx(600 * 1.02, rel=0.01)
    assert told.lines[0].held_by is Hold.RATE


def test_workers_hold_up_jobs_without_a_lane_or_more_slots_than_they_are() -> None:
    jobs = [waiting("plain", 1000), waiting("many", 100, "api")]
    told = forecast(jobs, {"api": {}}, past("plain", "", 0.5) + past("many", "api", 0.5))
    assert seconds(told) == pytest.approx(1100 / 10 * 0.5, rel=0.03)
    assert {line.held_by for line in told.lines} == {Hold.WORKERS}
    assert told.workers == 10


def test_a_parent_holds_up_its_children_together() -> None:
    lanes = {"all": {"max_parallel": 2}, "a": {"parent": "all"}, "b": {"parent": "all"}}
    jobs = [waiting("one", 50, "a"), waiting("two", 50, "b")]
    told = forecast(jobs, lanes, past("one", "a", 1.0) + past("two", "b", 1.0))
    assert seconds(told) == pytest.approx(50, rel=0.03)
    assert {line.held_in for line in told.lines} == {"all"}


@pytest.mark.parametrize("window", ["sliding", "bucket"])
def test_tokens_a_minute_hold_up_what_reserves_them(window: str) -> None:
    limits = {"tokens_per_interval": 1000, "interval_seconds": 60.0, "window": window}
    jobs = [waiting("ask", 100, "llm", each=Amounts(100, 60, 40, 2000))]
    told = forecast(jobs, {"llm": limits}, past("ask", "llm", 1.0))
    assert seconds(told) == pytest.approx(540, rel=0.05)  # the first thousand at once
    assert told.lines[0].held_by is Hold.TOKENS
    assert told.tokens == 10_000
    assert told.cost == pytest.approx(0.2)
    assert told.bounds


def test_a_daily_limit_holds_up_until_the_next_days() -> None:
    jobs = [waiting("look", 250, "api")]
    told = forecast(jobs, {"api": {"requests_per_day": 100}}, past("look", "api", 0.1))
    end_of_today = (NOW // DAY + 1) * DAY - NOW
    assert end_of_today + DAY < seconds(told) < end_of_today + DAY + 60
    assert told.lines[0].held_by is Hold.DAY


@pytest.mark.parametrize(
    ("state", "hold", "words"),
    [
        ({"blocked_until": FOR_EVER, "blocked_why": "paused"}, Hold.PAUSED, "until it is resumed"),
        (
            {"blocked_until": FOR_EVER, "blocked_why": "credentials"},
            Hold.CREDENTIALS,
            "until it is resumed",
        ),
        ({"step": 2, "retry_at": NOW + 5}, Hold.BREAKER, "until its service is back"),
    ],
)
def test_a_blocked_lane_is_never_done_and_others_are(
    state: dict[str, Any], hold: Hold, words: str
) -> None:
    rows = lane_rows({"api": {}}, **state)
    jobs = [waiting("look", 30, "api"), waiting("plain", 10)]
    told = forecast(jobs, {"api": {}}, past("plain", "", 1.0), rows=rows)
    blocked, plain = told.lines
    assert (blocked.stays, blocked.done_at, blocked.held_by) == (30, None, hold)
    assert (plain.jobs, plain.stays) == (10, 0)
    assert seconds(told) < 2
    assert words in in_words(told)[1]
    resumed = forecast(jobs, {"api": {}}, rows=rows, changes={"api": {"resumed": True}})
    assert (resumed.stays, resumed.lines[0].stays) == (0, 0)


def test_a_429_holds_up_for_as_long_as_it_says() -> None:
    rows = lane_rows({"api": {}}, blocked_until=NOW + 90, blocked_why="rate limited")
    told = forecast([waiting("look", 3, "api")], {"api": {}}, past("look", "api", 1.0), rows=rows)
    assert 91 <= seconds(told) < 93
    assert told.lines[0].held_by is Hold.BLOCKED


def test_scheduled_jobs_are_done_after_their_time() -> None:
    told = forecast([waiting("later", 5, due_in=500.0)], {}, past("later", "", 2.0))
    assert seconds(told) == pytest.approx(502, abs=1)


def test_jobs_that_wait_for_a_signal_are_not_done() -> None:
    asleep = waiting("ask", 4)._replace(due=False, first=NO_END, last=NO_END)
    told = forecast([asleep, waiting("ask", 2)], {}, past("ask", "", 1.0))
    assert (told.jobs, told.stays) == (6, 4)


def test_without_a_process_nothing_is_done_and_one_can_be_asked_about() -> None:
    jobs = [waiting("work", 100)]
    told = forecast(jobs, {}, past("work", "", 1.0), [])
    assert (told.done_at, told.stays, told.workers) == (None, 100, 0)
    assert told.lines[0].held_by is Hold.NOBODY
    assert "--processes 1" in in_words(told)[-1]
    asked = forecast(jobs, {}, past("work", "", 1.0), [], asked=2, workers=5)
    assert seconds(asked) == pytest.approx(10, rel=0.05)


def test_a_kind_that_nobody_handles_stays_and_the_others_are_done() -> None:
    jobs = [waiting("odd", 7), waiting("work", 10)]
    told = forecast(jobs, {}, past("work", "", 1.0), [process("work")])
    odd, _ = told.lines
    assert (odd.kind, odd.stays, odd.held_by) == ("odd", 7, Hold.NOBODY)
    assert seconds(told) < 2


def test_a_dead_process_does_not_count() -> None:
    dead = process("work")
    dead = ProcessInfo(
        **{**{f.name: getattr(dead, f.name) for f in fields(dead)}, "lease_until": NOW - 1}
    )
    assert forecast([waiting("work", 1)], {}, (), [dead]).workers == 0


def test_what_runs_is_done_when_such_runs_end() -> None:
    running = [RunningJob("work", "default", "", 50, "a", NOW - 4.0)]
    told = forecast([], {}, past("work", "", *[10.0] * 30), running=running)
    assert seconds(told) == pytest.approx(6)
    assert told.jobs == 1


def test_what_runs_keeps_its_slot_until_then() -> None:
    running = [RunningJob("work", "default", "api", 50, "a", NOW - 4.0)]
    lanes = {"api": {"max_parallel": 1}}
    told = forecast(
        [waiting("work", 1, "api")], lanes, past("work", "api", *[10.0] * 30), running=running
    )
    assert seconds(told) == pytest.approx(16, abs=0.5)


def test_runs_that_fail_are_made_again() -> None:
    once = forecast([waiting("work", 1000)], {}, past("work", "", *[1.0] * 30))
    runs = past("work", "", *[1.0] * 15) + past("work", "", *[1.0] * 15, attempts=2)
    twice = forecast([waiting("work", 1000)], {}, runs)
    assert seconds(twice) == pytest.approx(1.5 * seconds(once), rel=0.03)


def test_more_slots_are_asked_about_without_changing_anything() -> None:
    lanes = {"api": {"max_parallel": 2}}
    given = [waiting("embed", 400, "api")], lanes, past("embed", "api", 1.0)
    asked = forecast(*given, changes=parse_changes(["api.max_parallel=8"]))
    assert seconds(asked) == pytest.approx(50, rel=0.05)
    assert seconds(forecast(*given)) == pytest.approx(200, rel=0.05)


def test_another_rate_is_asked_about() -> None:
    lanes = {"api": {"requests_per_interval": 1, "interval_seconds": 1.0}}
    given = [waiting("fetch", 100, "api")], lanes, past("fetch", "api", 0.1)
    changes = parse_changes(["api.requests_per_interval=10", "api.interval_seconds=1"])
    assert seconds(forecast(*given, changes=changes)) == pytest.approx(10.2, rel=0.05)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("api.max_parallel", "is not LANE.KEY=VALUE"),
        ("max_parallel=3", "is not LANE.KEY=VALUE"),
        ("other.max_parallel=3", "lane 'other' is not in use"),
        ("api.colour=3", "'colour' is not one of"),
        ("api.max_parallel=many", "max_parallel must be a whole number"),
        ("api.max_parallel=0", "max_parallel must be over 0"),
        ("api.resumed=no", "resumed is true or false, not 'no'"),
    ],
)
def test_a_question_that_cannot_be_asked_says_why(given: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        forecaster([waiting("work", 1, "api")], {"api": {}}, changes=parse_changes([given]))


def test_a_lane_may_have_dots_in_its_name() -> None:
    assert parse_changes(["llm.answer.max_parallel=3", "llm.answer.window=bucket"]) == {
        "llm.answer": {"max_parallel": 3, "window": "bucket"}
    }


def test_a_tenant_is_told_of_its_own_jobs_among_all() -> None:
    mine = waiting("work", 100, tenant="mine")
    theirs = waiting("work", 900, tenant="theirs", band=10)
    told = forecast([mine, theirs], {}, past("work", "", 1.0), tenant="mine")
    assert told.jobs == 100
    assert seconds(told) == pytest.approx(100, rel=0.03)  # after theirs
    first = forecast([mine, theirs], {}, past("work", "", 1.0), tenant="theirs")
    assert seconds(first) == pytest.approx(90, rel=0.03)


def test_tenants_that_take_turns_are_done_together() -> None:
    jobs = [waiting("work", 100, tenant=tenant) for tenant in ("a", "b")]
    runs = past("work", "", 1.0)
    ends = [seconds(forecast(jobs, {}, runs, tenant=one)) for one in ("a", "b")]
    assert ends == [pytest.approx(20, rel=0.1)] * 2


def test_a_kind_can_be_a_pattern() -> None:
    jobs = [waiting("ingest.parse", 3), waiting("ingest.embed", 4), waiting("other", 5)]
    assert forecast(jobs, kind="ingest.*").jobs == 7


def test_of_a_kind_that_never_ran_a_second_is_assumed_and_said() -> None:
    told = forecast([waiting("new", 100)])
    assert told.unknown_kinds == ["new"]
    assert seconds(told) == pytest.approx(10, rel=0.05)
    assert told.margin_seconds > 15
    assert "a second each for new" in in_words(told)[-1]


def test_runs_that_differ_much_leave_more_doubt() -> None:
    even = forecast([waiting("work", 1000)], {}, past("work", "", *[1.0] * 100))
    uneven = forecast([waiting("work", 1000)], {}, past("work", "", *[0.1] * 90, *[9.1] * 10))
    assert seconds(uneven) == pytest.approx(seconds(even), rel=0.15)  # the last may be long
    assert uneven.margin_seconds > 5 * even.margin_seconds


def test_an_empty_queue_is_told_in_words() -> None:
    assert in_words(forecast([])) == ["nothing is queued or running"]


def test_words_say_what_binds() -> None:
    jobs = [waiting("embed", 4800, "embedder", each=Amounts(0, 0, 0, 100)), waiting("plain", 10)]
    runs = past("embed", "embedder", *[1.0] * 30) + past("plain", "", *[1.0] * 30)
    told = forecast(jobs, {"embedder": {"max_parallel": 8, "cost_per_day": 99.0}}, runs)
    whole, binding, other, *_ = in_words(told)
    assert whole.startswith("4,810 jobs: done ")
    assert binding.startswith("lane embedder binds: 4,800 embed at 4")
    assert " a minute, held by its slots; done " in binding
    assert binding.endswith("; 0.48")
    assert "+-" in binding
    assert other.startswith("no lane: 10 plain")


def mixed(scale: int) -> tuple[list[WaitingJobs], Configs, list[PastRun], list[ProcessInfo]]:
    """Five kinds, each held up by something else; `scale` times 1,000 jobs."""
    lanes: Configs = {
        "slots": {"max_parallel": 8},
        "rate": {"min_interval_seconds": 3.0},
        "tokens": {"tokens_per_interval": 60_000, "interval_seconds": 60.0},
        "daily": {"requests_per_day": 20_000, "max_parallel": 9},
    }
    small, large = Amounts(500, 500, 0, 1000), Amounts(5000, 5000, 0, 10_000)
    jobs = [
        waiting("embed", 200 * scale, "slots"),
        waiting("look", 20 * scale, "rate"),
        waiting("plain", 580 * scale),
        waiting("ask", 20 * scale, "tokens", each=large),
        waiting("ask", 50 * scale, "tokens", each=small),
        waiting("day", 130 * scale, "daily"),
    ]
    chance = random.Random(1)
    means = {"embed": 0.5, "look": 3.0, "plain": 0.02, "ask": 2.0, "day": 0.1}
    lane_of = {one.kind: one.lane for one in jobs}
    runs = [
        run
        for kind, mean in means.items()
        for run in past(kind, lane_of[kind], *(chance.expovariate(1 / mean) for _ in range(200)))
    ]
    return jobs, lanes, runs, [process(*means, workers=40)]


def ends(run: VirtualRun) -> dict[str, float]:
    for _ in run.run():
        pass
    return {kind: tally.done_at - NOW for (_, kind, _), tally in run.tallies.items()}


def test_what_goes_on_unchanged_is_passed_by_and_comes_out_as_if_played_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin, *_ = forecaster(*mixed(20)).runs()
    quick = begin()
    passed = ends(quick)
    monkeypatch.setattr(steady_state, "pass_by", lambda run: None)
    slow = begin()
    played = ends(slow)
    assert slow.starts == 20_000
    assert quick.starts < slow.starts
    assert passed == {kind: pytest.approx(end, rel=0.06) for kind, end in played.items()}
    assert sum(one.cost for one in quick.tallies.values()) == pytest.approx(
        sum(one.cost for one in slow.tallies.values())
    )


def test_a_million_jobs_take_few_starts() -> None:
    begin, *_ = forecaster(*mixed(1000)).runs()
    run = begin()
    found = ends(run)
    assert run.done == 1_000_000
    assert run.starts < 150_000
    assert found["look"] == pytest.approx(20_000 * 3.06, rel=0.02)
    assert found["embed"] == pytest.approx(200_000 * 0.505 / 8, rel=0.1)
    assert 5 * DAY < found["day"] < 7 * DAY
    assert found["ask"] == pytest.approx(125e6 / 60_000 * 60, rel=0.15)


def test_the_same_backlog_has_the_same_forecast() -> None:
    assert forecast(*mixed(2)) == forecast(*mixed(2))
