"""When the next tick of a schedule that is a row comes, and which tick is enqueued."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.schedule import catch_up_of, schedule_of
from penstock.engine.schedule_ticks import due_tick
from penstock.errors import ConfigError
from penstock.model.tick import schedule_tick_id, schedule_tick_key, tick_of
from penstock.ports.schedules import ScheduleRow


def row(**changes: Any) -> ScheduleRow:
    fields: dict[str, Any] = {"tenant": "default", "name": "nightly", "kind": "report"}
    fields |= {"payload": "{}", "cron": None, "every_seconds": 60.0, "timezone": "UTC"}
    fields |= {"priority": 50, "overlap": False, "catch_up": 3600.0, "next_at": 0.0}
    fields |= {"counted_at": 0.0, "last_at": None, "last_job": None, "revision": "1"}
    return ScheduleRow(**{**fields, "created_at": 0.0, "changed_at": 0.0, **changes})


@given(
    st.sampled_from([(7.0, None), (60.0, None), (None, "*/5 * * * *"), (None, "30 2 * * *")]),
    st.floats(min_value=1.7e9, max_value=2e9),
    st.floats(min_value=0, max_value=2e5),
    st.floats(min_value=1, max_value=1e5),
)
def test_the_tick_enqueued_is_the_newest_if_it_is_not_too_late(
    timing: tuple[float | None, str | None], since: float, later: float, catch_up: float
) -> None:
    schedule = schedule_of("nightly", *timing, "UTC" if timing[1] is None else "Europe/Berlin")
    next_at = schedule.after(since)
    now = next_at + later
    tick = due_tick(row(next_at=next_at, catch_up=catch_up), schedule, now)
    oldest = now - catch_up
    if tick is None:
        assert next_at < oldest
        assert schedule.after(oldest) > now, "no tick that is not too late"
    else:
        assert max(next_at, oldest) <= tick <= now
        assert schedule.after(tick) > now, "the newest"
        assert schedule.after(tick - 1e-3) == tick, "it is a tick"
    assert due_tick(row(next_at=next_at, catch_up=catch_up), schedule, since) is None, "not due"


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        # 02:00 is followed by 03:00 CEST, so half past two comes right after the gap.
        ("30 2 * * *", "2026-03-28T12:00+01:00", "2026-03-29T03:00+02:00"),
        ("30 2 * * *", "2026-03-29T12:00+02:00", "2026-03-30T02:30+02:00"),
        # 03:00 CEST is followed by 02:00 CET: half past two comes twice, and counts once.
        ("30 2 * * *", "2026-10-24T12:00+02:00", "2026-10-25T02:30+02:00"),
        ("30 2 * * *", "2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"),
    ],
)
def test_the_next_tick_in_berlin_where_clocks_change(
    expression: str, start: str, expected: str
) -> None:
    schedule = schedule_of("nightly", None, expression, "Europe/Berlin")
    found = schedule.after(datetime.fromisoformat(start).timestamp())
    assert found == datetime.fromisoformat(expected).timestamp()


@pytest.mark.parametrize(
    ("every", "cron", "timezone", "why"),
    [
        (None, None, "UTC", "needs every= or cron="),
        (60.0, "0 3 * * *", "UTC", "needs every= or cron="),
        (0.5, None, "UTC", "in seconds, from 1 to"),
        (60.0, None, "Europe/Berlin", "timezone of 'nightly' is for cron="),
        (None, "0 3 * *", "UTC", "cron of 'nightly' is '0 3 \\* \\*'"),
        (None, "0 25 * * *", "UTC", "Bad hour"),
        (None, "0 0 30 2 *", "UTC", "due at no time|Bad"),
        (None, "0 3 * * *", "Europe/Atlantis", "one that this machine knows"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    every: float | None, cron: str | None, timezone: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        schedule_of("nightly", every, cron, timezone)


def test_catch_up_has_bounds_and_a_default() -> None:
    assert catch_up_of("nightly", None) == 3600
    with pytest.raises(ConfigError, match="catch_up of 'nightly' is in seconds, from 1"):
        catch_up_of("nightly", 0.5)


def test_the_job_of_a_tick_is_that_of_its_schedule_alone() -> None:
    tick = datetime(2026, 11, 16, 3, tzinfo=UTC).timestamp()
    job_id, key = schedule_tick_id("acme", "on of off", tick), schedule_tick_key("on of off", tick)
    assert key == "tick 2026-11-16T03:00:00+00:00 of on of off"
    assert tick_of(job_id, "report", key, "acme") == tick
    assert tick_of(job_id, "report", key, "other") is None
    assert tick_of(job_id, "report", key) is None, "a periodic kind has nothing to do with it"
