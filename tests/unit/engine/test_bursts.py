"""Options of bursts: what belongs together, and what does not."""

from typing import Any

import pytest

from penstock.engine.bursts import bursts_of
from penstock.errors import ValidationError
from penstock.ports.queue import Debounce, NewJob

DEBOUNCE: dict[str, Any] = {"debounce": 5, "debounce_key": "user:7"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"debounce": 5}, "debounce needs a debounce_key"),
        ({"debounce_key": "k"}, "debounce_key is for debounce: give debounce=SECONDS, too"),
        ({"max_wait": 5}, "max_wait is for debounce"),
        ({"unique_key": "k"}, "unique_key is for unique_for"),
        ({**DEBOUNCE, "max_wait": 4}, "max_wait, 4 s, is less than debounce, 5 s"),
        ({**DEBOUNCE, "key": "k"}, "debounce and key exclude each other"),
        ({**DEBOUNCE, "delay": 1}, "debounce and delay exclude each other"),
        ({**DEBOUNCE, "log": "l"}, "reports to no log"),
        ({**DEBOUNCE, "unique_for": 1}, "either the latest or the first"),
        ({"unique_for": 5, "key": "k"}, "unique_for and key exclude each other"),
        ({"debounce": 0, "debounce_key": "k"}, "debounce is a number of seconds greater than 0"),
        ({"unique_for": float("inf")}, "unique_for is a number of seconds"),
        ({"unique_for": True}, "unique_for is a number of seconds"),
        ({"debounce": 5, "debounce_key": ""}, "debounce_key is 1 to 512 printable"),
        ({"debounce": 5, "debounce_key": ["a"]}, "2 payloads, but debounce_key has 1"),
        ({"debounce": 5, "debounce_key": ["a", None]}, "debounce_key has None in it"),
    ],
)
def test_what_does_not_belong_together_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        bursts_of(["{}", "{}"], options)


def test_of_a_batch_the_latest_of_each_burst_counts() -> None:
    bursts = bursts_of(["1", "2", "3"], {"debounce": 2, "debounce_key": ["a", "b", "a"]})
    items = [NewJob(n, n, None, "", burst=key) for n, key in zip("123", bursts.keys, strict=True)]

    assert bursts.debounce == Debounce(2.0, 20.0)
    assert [item.id for item in bursts.distinct(items)] == ["2", "3"]


def test_of_a_batch_the_first_of_equal_ones_counts() -> None:
    bursts = bursts_of(["1", "2", "1"], {"unique_for": 2})
    items = [NewJob(n, n, None, "", burst=key) for n, key in zip("123", bursts.keys, strict=True)]

    assert [item.id for item in bursts.distinct(items)] == ["1", "2"]
    keyed = bursts_of(["1", "2"], {"unique_for": 2, "unique_key": "1"})
    assert len({*keyed.keys, *bursts.keys}) == 3  # a key is no payload
