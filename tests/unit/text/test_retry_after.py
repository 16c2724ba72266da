"""Retry-After as servers send it: seconds, a date, or nonsense."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import runtime
from penstock.text.retry_after import retry_after


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0.0), ("1", 1.0), ("120", 120.0), (" 7 ", 7.0), ("007", 7.0)]
)
def test_seconds_are_read_as_seconds(value: str, seconds: float) -> None:
    assert retry_after(value) == seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    """A moment that does not pass."""
    now = time.time()
    monkeypatch.setattr(runtime, "now", lambda: now)
    return now


@pytest.mark.parametrize("ahead", [30.0, 3600.0])
def test_date_is_read_as_the_time_until_then(ahead: float, now: float) -> None:
    value = formatdate(now + ahead, usegmt=True)
    assert retry_after(value) == pytest.approx(ahead, abs=2.0)


def test_date_in_the_past_means_at_once() -> None:
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_obsolete_forms_of_dates_are_read_too(now: float) -> None:
    at = time.gmtime(now + 600)
    assert retry_after(time.strftime("%A, %d-%b-%y %H:%M:%S GMT", at)) == pytest.approx(600, abs=2)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock shows Tokyo's time."""
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("zone", ["GMT", "+0000", "-0000", ""])
def test_date_is_utc_wherever_the_machine_is(zone: str, now: float) -> None:
    at = time.gmtime(now + 600)
    value = time.strftime("%a, %d %b %Y %H:%M:%S ", at) + zone
    assert retry_after(value.strip()) == pytest.approx(600, abs=2)


@pytest.mark.parametrize(
    "value",
    [
        *(None, "", " ", "soon", "-5", "1.5.2", "1e5", "0x10", "²", "10 seconds", "\x00"),
        *("Wed, 99 Foo 2026 99:99:99 GMT", "Wed, 21 Oct 99999 07:28:00 GMT", "Mon"),
    ],
)
def test_nonsense_is_nothing(value: str | None) -> None:
    assert retry_after(value) is None


@given(value=st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ [\d:]+"))
def test_no_text_is_too_strange(value: str) -> None:
    seconds = retry_after(value)
    assert seconds is None or seconds >= 0.0


@pytest.mark.parametrize("value", ["9" * 13, "9" * 400])
def test_absurd_number_of_seconds_stays_a_time_that_can_be_told(value: str) -> None:
    """It becomes `blocked_until` of the lane, which people are shown as a date."""
    seconds = retry_after(value)
    assert seconds is None or (math.isfinite(seconds) and seconds <= 366 * 86400)
