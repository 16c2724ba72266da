"""Values as the dashboard shows them."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model.job import Job, JobState, Record
from penstock.server.dashboard.filters import as_json, duration, masks, size, visible, when
from penstock.server.dashboard.live import message
from penstock.server.dashboard.pages import environment
from penstock.server.dashboard.screens.job import WIDTH, bars, periods
from penstock.server.dashboard.session import local_path


def test_what_would_be_obeyed_or_not_be_seen_is_written_out() -> None:
    assert visible("a\x1b[31m\u202eb\n\tc\ud800") == "a\\x1b[31m\\u202eb\n\tc\\ud800"
    assert visible("مرحبا 暗号") == "مرحبا 暗号"
    assert visible(7) == 7


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0, "0 ms"), (0.004, "4 ms"), (0.4, "0.4 s"), (12, "12 s"), (59.6, "1 min")),
        *((180, "3 min"), (7200, "2 h"), (90_000, "25 h"), (432_000, "5 d"), (-1, "0 ms")),
        (None, "-"),
    ],
)
def test_durations_are_short(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_sizes_have_three_figures() -> None:
    assert [size(n) for n in (0, 999, 1_000, 1_234_567, 5 * 10**12)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "1.23 MB",
        "5 TB",
    ]


def test_times_are_told_from_now_and_never_fail() -> None:
    assert ">3 min ago<" in when(time.time() - 180)
    assert ">in 1 h<" in when(time.time() + 3660)
    assert when(1e12) == "never"
    assert when(None) == "-"


def test_json_is_escaped_and_what_is_long_is_folded() -> None:
    shown = as_json({"<b>": ["x" * 1000, 1, None, {}], "n": {"deep": True}})
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown
    assert shown.count("<details>") == 1
    assert "(1,000 characters)" in shown


def test_json_without_end_is_cut() -> None:
    deep: object = "end"
    for _ in range(500):
        deep = [deep]
    assert "..." in as_json(deep)
    assert len(as_json(["y" * 100] * 10_000)) < 40_000


def test_masks_stand_out_and_the_rest_is_text() -> None:
    assert masks("call [PHONE] <now>") == ('call <span class="mask">[PHONE]</span> &lt;now&gt;')


@pytest.mark.parametrize(
    "given", ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\nb"]
)
def test_nobody_is_led_elsewhere_after_signing_in(given: str) -> None:
    assert local_path(given) == "/"
    assert local_path("/jobs?kind=a") == "/jobs?kind=a"


def test_an_event_holds_every_line() -> None:
    assert message("<p>\r\na\n</p>", "7") == b"id: 7\ndata: <p>\ndata: a\ndata: </p>\n\n"


def test_a_life_is_waits_and_runs_in_turn() -> None:
    error = Record(type="ValueError", message="no")
    history = [
        Record(attempt=1, outcome="retry", started_at=2.0, finished_at=3.0, error=error),
        Record(outcome="redriven", started_at=None, finished_at=5.0),
    ]
    job = Job("1", "add", {}, JobState.COMPLETED, attempts=1, history=history)
    job.started_at, job.finished_at = 6.0, 10.0
    life = periods(job, now=20.0)
    assert [(one.what, one.seconds) for one in life] == [
        ("waited", 2),
        ("retry", 1),
        ("waited", 2),
        ("redriven", 0),
        ("waited", 1),
        ("completed", 4),
    ]
    drawn = bars(life)
    assert [kind for kind, _, _ in drawn] == [one.what for one in life]
    assert drawn[-1][1] + drawn[-1][2] == WIDTH


def test_a_life_that_goes_on_ends_now() -> None:
    queued = Job("1", "add", {}, JobState.QUEUED, enqueued_at=10.0)
    assert [(one.what, one.seconds) for one in periods(queued, now=15.0)] == [("waited", 5)]
    running = Job("1", "add", {}, JobState.RUNNING, enqueued_at=10.0, started_at=11.0, attempts=1)
    assert [one.what for one in periods(running, now=15.0)] == ["waited", "running"]


def rendered(name: str, job: Job, **values: Any) -> str:
    visit = SimpleNamespace(may_write=False)
    shown = {"periods": periods(job, 100.0), "bars": [], "width": WIDTH, "repeatable": True}
    shown |= {"waterfall": None, "signal": None}
    return (
        environment()
        .get_template(f"parts/{name}.html")
        .render(visit=visit, job=job, **{**shown, **values})
    )


@pytest.mark.parametrize("outcome", ["released", "handed back"])
def test_page_of_a_job_shows_a_run_that_was_given_back_as_a_run(outcome: str) -> None:
    why = Record(type="RateLimited", message="api.test/v1: HTTP 429")
    record = Record(attempt=1, outcome=outcome, started_at=1.0, finished_at=4.0, error=why)
    job = Job("1", "add", {}, JobState.COMPLETED, enqueued_at=1.0, attempts=1, history=[record])
    job.started_at, job.finished_at = 5.0, 6.0
    assert [(one.what, one.seconds) for one in periods(job, 9.0)] == [
        (outcome, 3),
        ("waited", 1),
        ("completed", 1),
    ]
    page = rendered("job", job)
    assert f'<span class="badge ">{outcome}</span>' in page
    assert "api.test/v1: HTTP 429" in page


def test_page_of_a_job_has_causes_members_response_and_log() -> None:
    inner = {"type": "KeyError", "message": "'<b>x</b>'", "place": "shop.py:7"}
    members = [{"type": "ValueError", "message": f"member {n}"} for n in range(2)]
    response = {"url": "http://api.test/", "status": 400, "body": "maximum context length"}
    error = Record(type="RuntimeError", message="outer", retryable=False, place="shop.py:9")
    error |= {"cause": inner, "members": members, "left_out": 3, "response": response}
    record = Record(attempt=1, outcome="failed", started_at=2.0, finished_at=3.0, error=error)
    job = Job("abc", "mail", {}, JobState.FAILED, error=error, history=[record])
    job.lines = [Record(at=2.5, attempt=1, level="warning", message="page <3> is empty")]
    shown = rendered("job", job)
    for part in ("at <bdi>shop.py:9</bdi>", "Caused by", "shop.py:7", "member 0", "member 1"):
        assert shown.count(part) == 2, part  # as its error, and in its life
    assert "and 3 more" in shown
    assert "maximum context length" in shown
    assert "00:00:02.500  attempt 1  warning  page &lt;3&gt; is empty" in shown
    assert "<b>x</b>" not in shown


def test_list_shows_how_far_a_running_job_is_and_why_a_waiting_one_failed() -> None:
    running = Job("abc", "mail", {}, JobState.RUNNING, progress=0.25, message="page 4 of 16")
    cause = {"type": "KeyError", "message": "x"}
    error = Record(type="RuntimeError", message="outer", retryable=True, cause=cause)
    waiting = Job("def", "mail", {}, JobState.QUEUED, error=error)
    wanted = SimpleNamespace(query=lambda: "", offers=[])
    values = {"jobs": [running, waiting], "wanted": wanted, "newer": 0}
    shown = rendered("jobs", running, **values, first=None, following=None)
    assert "25 % page 4 of 16" in shown
    assert "RuntimeError: outer (caused by KeyError: x)" in shown


@pytest.mark.parametrize("progress", [0.0, 0.25])
def test_a_running_job_does_not_show_the_error_of_the_attempt_before(progress: float) -> None:
    response = {"status": 400, "url": "https://example.org", "body": "of before"}
    error = Record(type="OldError", message="of before", retryable=True, response=response)
    running = Job("abc", "mail", {}, JobState.RUNNING, progress=progress, error=error)
    wanted = SimpleNamespace(query=lambda: "", offers=[])
    values = {"jobs": [running], "wanted": wanted, "newer": 0}
    assert "of before" not in rendered("jobs", running, **values, first=None, following=None)
    assert "of before" not in rendered("job", running)
    running.state = JobState.QUEUED
    assert "of before" in rendered("job", running)
