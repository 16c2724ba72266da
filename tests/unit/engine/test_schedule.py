"""Which ticks a schedule has: the same for whoever asks, whenever."""

import sys
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import JobContext, Penstock
from penstock.engine.schedule import Cron, Every, Schedule, make_periodic, newest
from penstock.errors import ConfigError, ValidationError
from penstock.model.tick import tick_id, tick_key, tick_of

TIMES = st.floats(min_value=1.5e9, max_value=2.5e9)
ZURICH = ZoneInfo("Europe/Zurich")


def schedule(**options: Any) -> Schedule:
    given: dict[str, Any] = {"every": None, "cron": None, "timezone": None, "catch_up": None}
    periodic = make_periodic("tidy", overlap=False, **(given | options))
    assert periodic is not None
    return periodic.schedule


def local(text: str, zone: ZoneInfo = ZURICH) -> float:
    """A local time, `+` behind it for the second of two."""
    moment = datetime.fromisoformat(text.removesuffix("+"))
    return moment.replace(tzinfo=zone, fold=int(text.endswith("+"))).timestamp()


def ticks(of: Schedule, start: float, count: int) -> list[float]:
    found = [of.after(start)]
    while len(found) < count:
        found.append(of.after(found[-1]))
    return found


@given(TIMES, st.floats(min_value=0.1, max_value=1e6))
@example(1763241600.3, 0.1)
@example(1763241600.0, 60.0)
def test_ticks_of_an_interval_are_multiples_of_it(at: float, seconds: float) -> None:
    every = Every(seconds)
    first, second = ticks(every, at, 2)

    step = round(seconds * 1e6)
    assert (round(first * 1e6) % step, round(second * 1e6) % step) == (0, 0)
    assert at - 1e-6 < first <= at + seconds + 1e-6
    assert round((second - first) * 1e6) == pytest.approx(step, abs=1)


@given(TIMES, st.floats(min_value=0, max_value=1e5), st.floats(min_value=0.1, max_value=1e5))
def test_newest_tick_is_the_last_one_up_to_now(since: float, later: float, seconds: float) -> None:
    every, now = Every(seconds), since + later

    tick = newest(every, since, now)

    if tick is None:
        assert every.after(since) > now
    else:
        assert tick <= now < every.after(tick)
        assert since < tick + 1e-6


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        # On the last Sunday of March 02:00 is followed by 03:00.
        ("30 2 * * *", "2026-03-28 12:00", ["2026-03-29 03:00", "2026-03-30 02:30"]),
        ("0 3 * * *", "2026-03-28 12:00", ["2026-03-29 03:00", "2026-03-30 03:00"]),
        ("30 1-3 * * *", "2026-03-29 01:00", ["2026-03-29 01:30", "2026-03-29 03:00"]),
        ("*/30 * * * *", "2026-03-29 01:10", ["2026-03-29 01:30", "2026-03-29 03:00"]),
        ("0 * * * *", "2026-03-29 00:30", ["2026-03-29 01:00", "2026-03-29 03:00"]),
        # On the last Sunday of October 02:00 to 03:00 comes twice.
        ("30 2 * * *", "2026-10-24 12:00", ["2026-10-25 02:30", "2026-10-26 02:30"]),
        ("30 2 * * *", "2026-10-25 02:10+", ["2026-10-26 02:30", "2026-10-27 02:30"]),
        ("45 2 * * *", "2026-10-25 02:50", ["2026-10-26 02:45", "2026-10-27 02:45"]),
        ("30 * * * *", "2026-10-25 02:00", ["2026-10-25 02:30", "2026-10-25 02:30+"]),
        ("*/30 * * * *", "2026-10-25 02:10", ["2026-10-25 02:30", "2026-10-25 02:00+"]),
        ("0 0 * * SUN", "2026-10-24 12:00", ["2026-10-25 00:00", "2026-11-01 00:00"]),
    ],
)
def test_cron_where_clocks_change(expression: str, start: str, expected: list[str]) -> None:
    cron = schedule(cron=expression, timezone="Europe/Zurich")
    found = ticks(cron, local(start), len(expected))
    assert found == [local(text) for text in expected]


EXPRESSIONS = ["30 2 * * *", "*/15 * * * *", "0 0,12 * * *", "10 1-3 * * *", "0 */2 * * *"]
ZONES = ["Europe/Zurich", "America/New_York", "America/Havana", "Australia/Lord_Howe"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
@settings(max_examples=12)
@given(data=st.data())
def test_every_process_comes_to_the_same_ticks(zone: str, expression: str, data: Any) -> None:
    """Whoever asks in between, also around a change of clocks, is told the next of those that one
    who has followed from the beginning comes to."""
    cron = Cron(expression, ZoneInfo(zone))
    # Each of these zones changes its clocks at some time of these days.
    day = data.draw(
        st.sampled_from(["03-07", "03-28", "04-04", "09-26", "10-03", "10-24", "10-31"])
    )
    start = datetime.fromisoformat(f"2026-{day}").replace(tzinfo=UTC).timestamp()
    followed = ticks(cron, start, 30)
    assert all(earlier < later for earlier, later in pairwise(followed))

    at = data.draw(st.floats(min_value=followed[0], max_value=followed[-1] - 1))

    assert cron.after(at) == min(tick for tick in followed if tick > at)
    assert newest(cron, start, at) == max(tick for tick in followed if tick <= at)


def test_cron_may_have_seconds_and_names() -> None:
    cron = schedule(cron="*/20 0 9  1 jan *")
    new_year = datetime(2027, 1, 1, 9, 0, tzinfo=UTC).timestamp()
    assert ticks(cron, new_year - 1, 3) == [new_year, new_year + 20, new_year + 40]
    assert str(cron) == "*/20 0 9 1 jan * (UTC)"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"every": 60, "cron": "0 3 * * *"}, "give one of them"),
        ({"every": 0}, "from 0.1"),
        ({"every": -1}, "from 0.1"),
        ({"every": float("nan")}, "from 0.1"),
        ({"every": float("inf")}, "from 0.1"),
        ({"every": "60"}, "in seconds"),
        ({"every": True}, "in seconds"),
        ({"every": 60, "timezone": "Europe/Zurich"}, "is for cron="),
        ({"every": 60, "catch_up": 0}, "catch_up of 'tidy' is in seconds, from 1 "),
        ({"timezone": "UTC"}, "need a schedule"),
        ({"overlap": True}, "need a schedule"),
        ({"catch_up": 5}, "need a schedule"),
        ({"cron": "0 3 * *"}, "Wrong number of fields"),
        ({"cron": "0 24 * * *"}, "Bad hour"),
        ({"cron": "every day"}, "Wrong number of fields"),
        ({"cron": ""}, "Wrong number of fields"),
        ({"cron": 5}, "must be like"),
        ({"cron": "0 " * 500}, "must be like"),
        ({"cron": "0 0 30 2 *"}, "Bad day-of-month"),
        ({"cron": "0 0 30 2 */8"}, "Bad day-of-month"),
        ({"cron": "0 3 * * *", "timezone": "Europe/Atlantis"}, "timezone of 'tidy'"),
        ({"cron": "0 3 * * *", "timezone": "../etc/passwd"}, "timezone of 'tidy'"),
        ({"cron": "0 3 * * *", "timezone": ""}, "timezone of 'tidy'"),
        ({"cron": "0 3 * * *", "timezone": 5}, "timezone of 'tidy'"),
    ],
)
def test_schedule_that_makes_no_sense_is_refused_at_registration(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        Penstock().job("tidy", **options)


@given(st.text(alphabet="0123456789*/,-#LWSUNJA ", max_size=30))
def test_any_text_is_a_cron_expression_or_is_refused(text: str) -> None:
    try:
        cron = schedule(cron=text)
    except ConfigError:
        return
    assert cron.after(1.8e9) > 1.8e9


def test_cron_without_the_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(ConfigError, match=r"pip install 'penstock\[cron\]'"):
        Penstock().job("tidy", cron="0 3 * * *")


def test_handler_that_a_tick_cannot_call_is_refused_at_registration() -> None:
    app = Penstock()

    async def needs(ctx: JobContext, folder: str, depth: int = 1) -> None: ...

    async def fits(ctx: JobContext, depth: int = 1) -> None: ...

    with pytest.raises(ConfigError, match="folder must have a default"):
        app.job("tidy", every=60)(needs)
    with pytest.raises(ValidationError, match="the lane of a 'tidy' job cannot be computed"):
        app.job("tidy", every=60, lane=lambda payload: str(payload["host"]))(fits)
    app.job("tidy", every=60)(fits)


@given(TIMES, st.sampled_from([0.1, 0.25, 1.0, 60.0, 86400.0]))
def test_a_job_tells_its_tick_and_others_have_none(at: float, seconds: float) -> None:
    tick = Every(seconds).after(at)
    job_id, key = tick_id("tidy", tick), tick_key(tick)

    assert len(job_id) == 32
    assert tick_of(job_id, "tidy", key) == tick
    assert tick_of("0" * 32, "tidy", key) is None
    assert tick_of(job_id, "sweep", key) is None
    assert tick_of(job_id, "tidy", None) is None
    assert tick_of(job_id, "tidy", "tick of the clock") is None
    assert tick_id("tidy", tick + seconds) > job_id, "sorted by time"
