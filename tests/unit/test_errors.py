"""What an error means to the engine, and how it is stored."""

import json
import pickle
from pathlib import Path

import pytest

from penstock import errors
from penstock.cli.document_view import advice
from penstock.cli.errors import ExitCode
from penstock.errors import (
    AuthenticationError,
    DeadlineExceeded,
    EmbedderError,
    JobNotFound,
    JobTimeout,
    KeyConflict,
    ParserError,
    PayloadTooLarge,
    PenstockError,
    PermanentError,
    ProviderError,
    QueueUnavailable,
    ReleasedTooOften,
    ResultTooLarge,
    RunLater,
    ValidationError,
    WaitTimeout,
    describe,
    is_permanent,
    services,
)


class Marked(Exception):
    retryable = False


class Inherited(Marked):
    pass


class Retryable(Exception):
    retryable = True


@pytest.mark.parametrize(
    "error",
    [
        ValidationError("x"),
        PayloadTooLarge("x"),
        ResultTooLarge("x"),
        ParserError("x"),
        EmbedderError("x"),
        ProviderError("x"),
        AuthenticationError("x"),
        DeadlineExceeded("x"),
        ReleasedTooOften("x"),
        PermanentError("x"),
        Marked(),
        Inherited(),
    ],
)
def test_permanent_errors_are_not_retried(error: Exception) -> None:
    assert is_permanent(error)


@pytest.mark.parametrize(
    "error",
    [ValueError(), TimeoutError(), JobTimeout("x"), QueueUnavailable("x"), Retryable(), OSError()],
)
def test_other_errors_are_retried(error: Exception) -> None:
    assert not is_permanent(error)


def test_handler_may_name_further_permanent_errors() -> None:
    assert is_permanent(FileNotFoundError(), (OSError,))
    assert not is_permanent(FileNotFoundError(), (KeyError,))


def test_error_is_stored_with_type_message_and_whether_it_is_retried() -> None:
    assert describe(ValueError("it broke"), retryable=True) == {
        "type": "ValueError",
        "message": "it broke",
        "retryable": True,
    }


def test_error_without_a_message_is_called_by_its_type() -> None:
    assert describe(KeyboardInterrupt(), retryable=False)["message"] == "KeyboardInterrupt"


def test_long_message_is_cut_and_says_how_long_it_was() -> None:
    exact = describe(ValueError("x" * 4000), retryable=True)["message"]
    long = describe(ValueError("x" * 10_000_000), retryable=True)["message"]

    assert exact == "x" * 4000
    assert long == "x" * 4000 + "... (10000000 characters)"


def test_error_whose_message_cannot_be_had_is_described_all_the_same() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert describe(Broken(), retryable=True)["type"] == "Broken"


def test_stored_error_is_text_every_store_takes() -> None:
    message = describe(ValueError("file \udcff.txt"), retryable=True)["message"]

    assert "file" in message
    json.dumps(message, ensure_ascii=False).encode()


def test_time_limits_are_timeout_errors_too() -> None:
    for error in (WaitTimeout, JobTimeout, DeadlineExceeded):
        assert issubclass(error, TimeoutError)
    assert issubclass(ValidationError, ValueError)


def test_every_error_is_a_penstock_error() -> None:
    classes = [
        each
        for each in {**vars(errors), **vars(services)}.values()
        if isinstance(each, type) and issubclass(each, BaseException)
    ]
    assert len(classes) > 15
    others = [each for each in classes if not issubclass(each, PenstockError)]
    assert others == [errors.Suspended]  # no error: it unwinds a handler, past `except Exception`


def test_errors_carry_what_the_caller_needs() -> None:
    conflict, missing = KeyConflict("k", "id1"), JobNotFound("id2")

    assert (conflict.key, conflict.job_id) == ("k", "id1")
    assert "'k'" in str(conflict)
    assert "id1" in str(conflict)
    assert missing.job_id == "id2"
    assert "id2" in str(missing)


@pytest.mark.parametrize(
    "error", [KeyConflict("k", "id1"), JobNotFound("id2"), RunLater(2.0, "why"), WaitTimeout("x")]
)
def test_errors_survive_pickling(error: PenstockError) -> None:
    """Process pools and test runners send exceptions from one process to another."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 400 * 86400])
def test_run_later_refuses_an_impossible_delay(delay: float) -> None:
    with pytest.raises(ValueError, match="delay"):
        RunLater(delay)


def test_run_later_says_when_and_why() -> None:
    assert (RunLater().delay, str(RunLater(5))) == (1.0, "run again in 5 s")
    assert (RunLater(5, "no room").reason, str(RunLater(5, "no room"))) == ("no room", "no room")


def test_reason_a_document_cannot_be_parsed_for_is_part_of_what_is_stored() -> None:
    assert describe(ParserError("a password is needed", "encrypted"), retryable=False) == {
        "type": "ParserError",
        "message": "a password is needed",
        "retryable": False,
        "reason": "encrypted",
    }


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("encrypted", "without a password"),
        ("unknown", "convert it"),
        ("oversized", "split it"),
        ("bomb", "if you trust it"),
        ("empty", "once it has content"),
        ("scanned", "set `documents: {scans: ocr}`"),
        ("corrupt", "repair"),
        ("a reason of a later version", "repair"),
    ],
)
def test_advice_goes_by_the_reason_and_not_by_words_of_the_message(reason: str, says: str) -> None:
    error = describe(ParserError("the password table is encrypted", reason), retryable=False)
    assert says in advice(error, "a")


GUIDE = Path(__file__).parents[2] / "docs" / "guide-server.md"
CLASSES = [
    value
    for value in {**vars(errors), **vars(services)}.values()
    if isinstance(value, type) and issubclass(value, PenstockError)
]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_says_how_it_is_reported(error: type[PenstockError]) -> None:
    """HTTP, MCP and the command line read it off the class; the guide lists every code."""
    assert f"| {error.http_status} | `{error.code}` |" in GUIDE.read_text()
    assert error.exit_code in set(ExitCode)
    assert (error.http_status == 500) == (error.code == "internal")
    assert (error.http_status == 503) == bool(error.public), "its message may name addresses"
    assert (error.http_status == 404) == (error.exit_code == ExitCode.NOT_FOUND)
