"""What is kept of an error that ended a run: nothing that helps to find its cause is lost."""

import asyncio
import json
import logging
from typing import Any

import httpx2
import pytest

from penstock import JobContext
from penstock.cli.job_view import print_job
from penstock.engine.failure import OTHERS_KEPT, TRACEBACK_LIMIT, described, formatted
from penstock.engine.handlers import Handler
from penstock.engine.log_fields import tell
from penstock.model.job import Job, JobState, Record
from penstock.model.payload import encode_result
from penstock.outbound.responses import raise_for_status
from penstock.ports.queue import Exchange, Lease, Outcome, Settlement
from penstock.retrieval.query import query_terms, weigh
from penstock.telemetry.logs import told
from penstock.text.error_text import in_words


async def works(ctx: JobContext) -> None: ...


MINE = Handler.of("mine", works)
HERE = "tests/unit/engine/test_failure.py:"


def caught(work: Any) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def kept(error: BaseException, handler: Handler = MINE) -> tuple[dict[str, Any], str]:
    return described(error, handler, retryable=True), formatted(error, handler) or ""


def grouped() -> None:
    async def child(n: int) -> None:
        raise ValueError(f"inner problem {n}")

    async def parent() -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(3):
                group.create_task(child(n))

    asyncio.run(parent())


def chained() -> None:
    try:
        dict[str, int]()["missing"]
    except KeyError as error:
        raise RuntimeError("outer") from error


def in_handling() -> None:
    try:
        chained()
    except RuntimeError:
        raise OSError("cleaning up failed")  # noqa: B904 (that is the point)


def asks() -> None:
    request = httpx2.Request("GET", "http://api.test/v1")
    raise_for_status(httpx2.Response(404, request=request), "api")


def test_group_keeps_all_its_members() -> None:
    error, trace = kept(caught(grouped))
    assert error["type"] == "ExceptionGroup"
    assert [one["message"] for one in error["members"]] == [f"inner problem {n}" for n in range(3)]
    assert all(one["place"].startswith(HERE) for one in error["members"])
    for n in range(3):
        assert f"ValueError: inner problem {n}" in trace
        assert f"ValueError: inner problem {n}" in in_words(error)


def test_error_keeps_its_cause() -> None:
    error, trace = kept(caught(chained))
    assert (error["message"], error["cause"]["type"]) == ("outer", "KeyError")
    assert in_words(error) == "RuntimeError: outer (caused by KeyError: 'missing')"
    assert "KeyError: 'missing'" in trace
    assert 'dict[str, int]()["missing"]' in trace


def test_error_keeps_what_was_being_handled() -> None:
    error, trace = kept(caught(in_handling))
    assert error["context"]["cause"]["type"] == "KeyError"
    assert "cleaning up failed (while handling RuntimeError: outer (caused by" in in_words(error)
    assert "KeyError: 'missing'" in trace


def test_what_was_hidden_on_purpose_stays_hidden() -> None:
    def work() -> None:
        try:
            raise KeyError("secret")
        except KeyError:
            raise ValueError("plain") from None

    error, trace = kept(caught(work))
    assert "secret" not in json.dumps(error) + trace.replace('KeyError("secret")', "")


def test_own_frames_of_the_user_are_kept_and_ours_folded() -> None:
    error, trace = kept(caught(asks))
    assert error["place"] == f"{HERE}{asks.__code__.co_firstlineno + 2}"
    assert 'raise_for_status(httpx2.Response(404, request=request), "api")' in trace
    assert "1 frame inside penstock" in trace
    assert "outbound/responses.py" not in trace


def test_own_frames_behind_ours_are_kept() -> None:
    class Frequencies(dict[str, int]):
        def get(self, *asked: object) -> int:
            raise ValueError("a frame of the user, called by one of ours")

    def weighs() -> None:
        weigh(query_terms("otters"), Frequencies(), 1)

    _, trace = kept(caught(weighs))
    assert "in weighs" in trace
    assert "inside penstock" in trace
    assert 'raise ValueError("a frame of the user, called by one of ours")' in trace


def test_payload_that_does_not_fit_is_quoted_nowhere() -> None:
    async def typed(ctx: JobContext, n: int) -> None: ...

    handler = Handler.of("typed", typed)
    error, trace = kept(caught(lambda: handler.arguments.parse('{"n": "hunter2"}')), handler)
    assert error["type"] == "ValidationError"
    assert "hunter2" not in json.dumps(error) + trace.replace('\'{"n": "hunter2"}\'', "")


def test_what_the_handler_was_handling_is_kept_behind_an_error_of_ours() -> None:
    def work() -> None:
        try:
            chained()
        except RuntimeError:
            asks()

    error, trace = kept(caught(work))
    assert (error["type"], error["context"]["message"]) == ("HttpError", "outer")
    assert "KeyError: 'missing'" in trace


def test_place_of_what_we_refuse_of_a_handler_is_the_handler() -> None:
    refusal = caught(lambda: encode_result(object()))
    frame = refusal.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next  # after a run, there is no frame of the handler's any more
    assert frame is not None
    error, _ = kept(refusal.with_traceback(frame))
    assert error["place"] == f"{HERE}{works.__code__.co_firstlineno}"


def test_of_our_own_jobs_only_types_and_places_are_kept_of_the_causes() -> None:
    async def parse(ctx: JobContext) -> None: ...

    parse.__module__ = "penstock.documents.pipeline"
    ours = Handler.of("ingest.parse", parse)
    error, trace = kept(caught(in_handling), ours)
    assert error["context"]["cause"]["type"] == "KeyError"
    assert "missing'" not in json.dumps(error) + trace.replace('dict[str, int]()["missing"]', "")
    assert "KeyError" in trace
    assert HERE.rstrip(":") in trace


def test_what_is_kept_is_bounded() -> None:
    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise ValueError("x" * 100_000)

    many = ExceptionGroup("many", [ValueError("y" * 10_000) for _ in range(300)])
    loop = ValueError("loop")
    loop.__cause__ = loop
    for error in (many, loop, caught(lambda: deep(300)), caught(lambda: _raise(many))):
        stored, trace = kept(error)
        assert len(json.dumps(stored)) < 60_000
        assert len(trace) < TRACEBACK_LIMIT + 100
    stored, _ = kept(many)
    assert len(stored["members"]) == OTHERS_KEPT
    assert stored["left_out"] == 300 - OTHERS_KEPT
    assert f"{300 - OTHERS_KEPT} more" in in_words(stored)


def _raise(error: BaseException) -> None:
    raise error


def test_log_of_our_own_trouble_names_the_members_of_a_group() -> None:
    lines = told(caught(grouped))
    assert lines.count("| ValueError") == 3
    assert "inner problem" not in lines.replace('ValueError(f"inner problem {n}")', "")


LEASE = Lease(
    *(1, "abc", "mine", "default", "{}", 50, "", None, None, None, 0.0, 0.0, None, None, None),
    *(1, 0, 0, 1, "[]"),
)


def logged(error: BaseException, caplog: pytest.LogCaptureFixture, *, quotes: bool = True) -> str:
    stored, trace = kept(error)
    ended = Settlement(LEASE, Outcome.FAILED, error=stored, traceback=trace)
    caplog.clear()
    nothing = Exchange([], [], None, True)
    tell(ended, nothing, stale=False, quotes=quotes, names=())
    [record] = caplog.records
    return record.getMessage()


def test_log_says_what_failed_and_where_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    line = logged(caught(chained), caplog)
    assert line.startswith(f"job abc (mine) failed permanently: RuntimeError: outer at {HERE}")
    assert f"(caused by KeyError: 'missing' at {HERE}" in line
    assert "\n" not in line
    assert "inner problem 2" in logged(caught(grouped), caplog)


def test_verbose_log_has_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    assert "Traceback (most recent call last)" in logged(caught(chained), caplog)


def test_log_hides_secrets_and_tells_only_types_where_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    leaky = caught(lambda: _raise(ValueError("https://me:word@host/?token=abc\nnext")))
    assert "https://***@host/?token=*** next at tests" in logged(leaky, caplog)
    line = logged(leaky, caplog, quotes=False)
    assert line.startswith(f"job abc (mine) failed permanently: ValueError at {HERE}")
    assert "host" not in line


def test_jobs_show_has_cause_place_response_and_log(capsys: pytest.CaptureFixture[str]) -> None:
    error, trace = kept(caught(chained))
    error["response"] = {"url": "http://api.test/v1", "status": 400, "body": "too long"}
    record = Record(attempt=1, outcome="failed", started_at=1.0, finished_at=2.0, error=error)
    line = Record(at=1.5, attempt=1, level="warning", message="page 3 is empty")
    job = Job("abc", "mine", {}, JobState.FAILED, error=Record(error), lines=[line])
    job.history = [Record(record, traceback=trace)]
    print_job(job)
    shown = capsys.readouterr().out
    assert f"RuntimeError: outer at {HERE}" in shown
    assert "(caused by KeyError: 'missing'" in shown
    assert "HTTP 400 from http://api.test/v1: too long" in shown
    assert "run 1  warning  page 3 is empty" in shown
