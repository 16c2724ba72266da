"""Log lines: one JSON object each, or text; of errors their type and place, not what they say."""

import json
import logging
import sys
from typing import Any

import pytest

from penstock.telemetry.logs import JsonFormatter, RepeatFilter, TextLines

HUSH = "sk-hush-4792"


def record(message: str = "it %s", *values: Any, name: str = "penstock", **given: Any) -> Any:
    made = logging.LogRecord(name, logging.WARNING, __file__, 1, message, values, None)
    made.__dict__.update(given)
    return made


def failing() -> Any:
    try:
        try:
            raise KeyError(HUSH)
        except KeyError as error:
            raise ValueError(f"cannot use {HUSH}") from error
    except ValueError:
        return sys.exc_info()


def test_entry_is_one_line_of_json_with_what_is_known_of_the_job() -> None:
    lines = JsonFormatter(lambda: {"job": "1", "kind": "mail", "attempt": 2, "lane": None})
    text = lines.format(record("a\nb %s", "c", kind="other", created=0.0, msecs=7.0))
    assert "\n" not in text
    told = json.loads(text)
    assert told.pop("process") > 0
    assert told == {
        "time": "1970-01-01T00:00:00.007Z",
        "level": "warning",
        "logger": "penstock",
        "message": "a\nb c",
        "job": "1",
        "kind": "other",
        "attempt": 2,
    }


@pytest.mark.parametrize("lines", [JsonFormatter(dict), TextLines()], ids=["json", "text"])
def test_of_an_exception_its_type_and_place_are_told_and_not_what_it_says(
    lines: logging.Formatter,
) -> None:
    text = lines.format(record("it broke", exc_info=failing()))
    assert "it broke" in text
    assert "ValueError" in text
    assert "KeyError" in text
    assert __file__ in text
    assert HUSH not in text


def test_what_is_repeated_is_let_through_seldom() -> None:
    seldom = RepeatFilter("opentelemetry")
    repeated = [seldom.filter(record(name="opentelemetry.exporter")) for _ in range(5)]
    assert repeated == [True, False, False, False, False]
    assert all(seldom.filter(record()) for _ in range(5))


@pytest.mark.parametrize("lines", [JsonFormatter(dict), TextLines()], ids=["json", "text"])
@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            f"Task exception was never retrieved\nfuture: <Task exception=OSError({HUSH!r})>",
            "Task exception was never retrieved",
        ),
        (f"Exception in callback send({HUSH!r}) at x.py:1", "Exception in callback send"),
    ],
)
def test_of_what_asyncio_says_the_first_words_are_told(
    lines: logging.Formatter, message: str, kept: str
) -> None:
    text = lines.format(record(message, name="asyncio"))
    assert kept in text
    assert HUSH not in text
