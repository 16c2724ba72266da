"""What options hold."""

from typing import Any

import pytest

from penstock.cli.options import metadata_of


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("2026", 2026),
        ("-2.5", -2.5),
        ("true", True),
        ("false", False),
        ('"2026"', "2026"),
        ('"true"', "true"),
        ("007", "007"),
        ("1.10", "1.10"),
        ("1e5", "1e5"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("2026-01-31", "2026-01-31"),
        ("9" * 5000, "9" * 5000),
        ("null", "null"),
        ("[1]", "[1]"),
        ('"half', '"half'),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_metadata_is_read_as_it_would_be_over_http(given: str, value: Any) -> None:
    read = metadata_of([f"key={given}"])["key"]
    assert (type(read), read) == (type(value), value)
