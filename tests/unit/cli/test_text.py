"""Values as short texts for people."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.output import duration, moment, plural, pretty, printable, problem


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.99, "10 s"),
        (59, "59 s"),
        (59.7, "1 min"),
        (61, "1 min"),
        (3540, "59 min"),
        (3600, "1 h"),
        (47 * 3600, "47 h"),
        (48 * 3600, "2 d"),
        (400 * 86400, "400 d"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_moment_says_which_way() -> None:
    assert moment(None) == "-"
    assert moment(time.time() - 120).endswith("(2 min ago)")
    assert moment(time.time() + 7260).endswith("(in 2 h)")


def test_plural() -> None:
    assert [plural(n, "job") for n in (0, 1, 2000)] == ["0 jobs", "1 job", "2,000 jobs"]


@given(st.text())
def test_printable_is_one_line_a_terminal_only_shows(text: str) -> None:
    assert printable(text).isprintable()


@given(st.text().filter(str.isprintable))
def test_printable_leaves_plain_text_alone(text: str) -> None:
    assert printable(text) == text


def test_pretty_takes_lines_when_it_is_long() -> None:
    assert pretty({"a": 1}) == '{"a": 1}'
    assert pretty({"a": "x" * 100}).count("\n") == 2
    assert "\x9b" not in pretty({"a": "\x9b"})


def test_problem_is_one_line() -> None:
    assert problem(None) == ""
    assert problem({"type": "ValueError", "message": "a\nb"}) == "ValueError: a\\nb"
