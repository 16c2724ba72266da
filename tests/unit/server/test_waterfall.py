"""The steps of a job as its page draws them."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from penstock.model.job import Job, JobState, Record
from penstock.ports.steps import END_HASH, WAIT_HASH, StepRow, signal_of, signal_reason
from penstock.server.dashboard.pages import environment
from penstock.server.dashboard.waterfall import READ, ROWS, WIDTH, Waterfall, waterfall

JOB = Job("abc", "report", {}, JobState.COMPLETED, enqueued_at=90.0, attempts=1)
JOB.started_at, JOB.finished_at = 100.0, 200.0
DONE = {"finished_at": 110.0, "result": "1"}


def row(name: str, started_at: float, **more: Any) -> StepRow:
    made = StepRow(f"key {name} {started_at}", name, "hash", 1, "", None, 1, started_at)
    return made._replace(**more)


def drawn(*rows: StepRow, job: Job = JOB, now: float = 500.0) -> Waterfall:
    return waterfall(rows, job, (), now)


def page(found: Waterfall, job: Job = JOB, *, may_write: bool = False, **values: Any) -> str:
    shown = {"signal": signal_of(job), "question": None, "waterfall": found}
    values = {**shown, "periods": [], "bars": [], **values}
    visit = SimpleNamespace(may_write=may_write)
    template = environment().get_template("parts/job.html")
    return template.render(visit=visit, job=job, width=WIDTH, repeatable=True, **values)


def test_rows_come_in_the_order_they_began_with_bars_on_one_scale() -> None:
    details = json.dumps({"model": "m1", "seconds": 19.5, "tokens_in": 1200, "price": 0.25})
    found = drawn(
        row("write", 150.0, finished_at=200.0, result='"text"', attempts=3, lane="cpu"),
        row("", 140.0, finished_at=140.0, result='{"pages": 3}'),
        row("plan", 100.0, finished_at=120.0, result="[]"),
        row("model:x", 120.0, finished_at=140.0, result="{}", details=details, lane="model:x"),
        row("plan", 145.0, occurrence=2, finished_at=150.0, result="[]"),
    )
    assert [(one.kind, one.name) for one in found.rows] == [
        ("step", "plan"),
        ("receipt", "model:x"),
        ("event", '{"pages": 3}'),
        ("step", "plan #2"),
        ("step", "write"),
    ]
    assert [(one.at, one.wide) for one in found.rows] == [
        (0, 200),
        (200, 200),
        (400, 6),
        (450, 50),
        (500, 500),
    ]
    assert [one.seconds for one in found.rows] == [20, 19.5, None, 5, 50]
    assert found.names == ["plan", "write"]
    shown = page(found)
    for part in ("plan #2", "3 attempts", "lane <bdi>cpu</bdi>", "m1", "1,200 tokens in", "0.25"):
        assert part in shown, part
    assert 'x="500.0" y="0" width="500.0"' in shown
    assert "style=" not in shown


def test_a_void_receipt_is_marked() -> None:
    def said(**details: Any) -> str:
        found = row("host:a", 100.0, details=json.dumps({"seconds": 1.0, **details}), **DONE)
        return page(drawn(found))

    assert "it is not taken any more" in said(void=True)
    assert 'class="badge bad">void<' in said(void=True)
    assert "void" not in said()
    assert "too large to be recorded" in said(too_large=True)


def test_what_is_secret_by_its_name_is_hidden_in_results_events_and_parameters() -> None:
    secret = json.dumps({"password": "hunter2", "street": "Elm 7"})
    rows = [
        row("step", 100.0, finished_at=101.0, result=secret),
        row("", 102.0, finished_at=102.0, result=secret),
        row("host:a", 103.0, details=json.dumps({"parameters": json.loads(secret)}), **DONE),
    ]
    shown = page(waterfall(rows, JOB, ("street",), 500.0))
    assert shown.count("***") >= 6
    assert "hunter2" not in shown
    assert "Elm 7" not in shown


def test_a_long_result_is_cut_and_one_that_is_longer_is_not_read() -> None:
    long = row("long", 100.0, finished_at=101.0, result=json.dumps(list(range(2000))))
    found = drawn(long)
    assert "... and more" in str(found.rows[0].result)
    assert len(str(found.rows[0].result)) < 2500
    huge = drawn(row("huge", 100.0, finished_at=101.0, result="x" * (READ + 1)))
    assert (huge.rows[0].result, huge.rows[0].unread) == (None, READ + 1)
    assert "16,385 characters: <code>penstock jobs show abc --steps --json" in page(huge)


def test_no_more_than_the_first_rows_are_shown_and_the_rest_counted() -> None:
    rows = [row("step", 100.0 + n / 10, finished_at=200.0, result="1") for n in range(ROWS + 3)]
    found = drawn(*reversed(rows))
    assert (len(found.rows), found.more) == (ROWS, 3)
    assert found.rows[-1].step.started_at == rows[ROWS - 1].started_at
    assert "3 more: <code>penstock jobs show abc --steps</code>" in page(found)


def test_a_sleep_lasts_until_its_end_and_no_longer_than_its_job() -> None:
    sleep = row("sleep", 120.0, arguments=WAIT_HASH, finished_at=120.0, result="150.0")
    (one,) = drawn(sleep).rows
    assert (one.kind, one.at, one.wide, one.seconds) == ("wait", 200, 300, 30)
    cancelled = replace(JOB, finished_at=130.0)
    (one,) = drawn(sleep, job=cancelled).rows
    assert (one.seconds, one.at + one.wide) == (10, WIDTH)


def test_a_wait_begins_when_its_end_was_recorded() -> None:
    end = {"arguments": END_HASH, "finished_at": 110.0, "result": "900.0"}
    until = row("wait_for:go:until", 110.0, **end)
    came = row("wait_for:go", 160.0, arguments=WAIT_HASH, finished_at=160.0, result="1")
    (one,) = drawn(until, came).rows
    assert (one.name, one.kind, one.seconds, one.wide) == ("wait_for:go", "wait", 50, 500)
    waiting = replace(JOB, state=JobState.QUEUED, finished_at=None)
    (one,) = drawn(until, job=waiting, now=200.0).rows
    assert (one.name, one.step.recorded, one.until, one.seconds) == ("wait_for:go", False, 900, 90)
    (one,) = drawn(came).rows  # without a timeout nobody knows when it began
    assert one.seconds is None


def test_records_of_the_job_it_repeats_are_said_to_be_so_and_do_not_stretch_the_scale() -> None:
    job = replace(JOB, rerun_of="old")
    old = row("plan", 5.0, finished_at=8.0, result="1")
    new = row("write", 150.0, finished_at=200.0, result="1")
    found = drawn(old, new, job=job)
    assert [one.taken_over for one in found.rows] == [True, False]
    assert [(one.at, one.wide) for one in found.rows] == [(0, 6), (500, 500)]
    assert "taken over" in page(found, job)


def test_a_step_that_is_under_way_reaches_to_now_and_is_not_offered() -> None:
    running = replace(JOB, state=JobState.RUNNING, finished_at=None)
    found = drawn(row("read", 120.0), job=running, now=140.0)
    assert (found.rows[0].seconds, found.names, found.seconds) == (20, [], 40)
    assert "not recorded yet" in page(found, running)
    ended = drawn(row("read", 120.0))
    assert (ended.rows[0].seconds, ended.rows[0].wide) == (None, 6)


def test_an_earlier_run_begins_the_scale() -> None:
    history = [Record(attempt=1, outcome="retry", started_at=50.0, finished_at=60.0)]
    (one,) = drawn(
        row("plan", 125.0, finished_at=200.0, result="1"), job=replace(JOB, history=history)
    ).rows
    assert (one.at, one.wide) == (500, 500)


def test_only_who_may_write_is_offered_a_signal_and_only_for_a_job_that_waits_for_one() -> None:
    waiting = replace(JOB, state=JobState.QUEUED, finished_at=None)
    waiting.waiting_for = signal_reason("it's <ok>") + " until 10:00:00"
    assert signal_of(waiting) == "it's <ok>"
    form = 'name="name" value="it&#39;s &lt;ok&gt;"'
    nothing = drawn()
    assert form in page(nothing, waiting, may_write=True)
    assert "Send signal" not in page(nothing, waiting)
    for other in (None, "a worker", "the signal of something"):
        still = replace(waiting, waiting_for=other)
        assert signal_of(still) is None
        assert "Send signal" not in page(nothing, still, may_write=True)


def test_a_rerun_is_offered_from_each_recorded_step() -> None:
    receipt = row("host:a", 105.0, details="{}", **DONE)
    found = drawn(row("b", 101.0, **DONE), row("a", 100.0, **DONE), receipt)
    shown = page(found, may_write=True)
    assert '<option value="a">a</option><option value="b">b</option>' in "".join(shown.split("\n"))
    assert '<option value="host:a">' not in shown
