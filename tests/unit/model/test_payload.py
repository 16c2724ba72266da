"""Payloads and results as JSON text."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import (
    PayloadTooLarge,
    PermanentError,
    ResultTooLarge,
    ValidationError,
)
from penstock.model.job import PAYLOAD_LIMIT, RESULT_LIMIT
from penstock.model.payload import encode_payload, encode_result, plain_payload

text = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    plain | text,
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=20,
)


@settings(max_examples=30)
@given(st.dictionaries(text, values))
def test_payload_survives_the_trip(payload: dict[str, Any]) -> None:
    assert json.loads(encode_payload(payload)) == payload


@settings(max_examples=30)
@given(st.dictionaries(text, values), st.randoms())
def test_equal_payloads_are_equal_texts(payload: dict[str, Any], random: Any) -> None:
    names = list(payload)
    random.shuffle(names)

    assert encode_payload({name: payload[name] for name in names}) == encode_payload(payload)


def test_payload_is_written_canonically() -> None:
    assert encode_payload({"b": [1, 2.5], "a": {"d": None, "c": "é"}}) == (
        '{"a":{"c":"é","d":null},"b":[1,2.5]}'
    )


def test_no_payload_is_an_empty_one() -> None:
    assert encode_payload(None) == encode_payload({}) == "{}"


@pytest.mark.parametrize("letter", ["x", "é", "전", "😀", "\x01"])
def test_payload_limit_counts_bytes_exactly(letter: str) -> None:
    size = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    count, rest = divmod(PAYLOAD_LIMIT - len('{"a":""}'), size)
    largest = letter * count + "x" * rest

    assert len(encode_payload({"a": largest}).encode()) == PAYLOAD_LIMIT
    with pytest.raises(PayloadTooLarge) as refusal:
        encode_payload({"a": largest + "x"})
    assert f"{PAYLOAD_LIMIT + 1:,}" in str(refusal.value)
    assert f"{PAYLOAD_LIMIT:,}" in str(refusal.value)


@pytest.mark.parametrize("letter", ["x", "é"])
def test_result_limit_counts_bytes_exactly(letter: str) -> None:
    count, rest = divmod(RESULT_LIMIT - 2, len(letter.encode()))
    largest = letter * count + "x" * rest

    assert len(encode_result(largest).encode()) == RESULT_LIMIT
    with pytest.raises(ResultTooLarge, match="reference"):
        encode_result(largest + "x")


def nested() -> list[Any]:
    inner: list[Any] = []
    for _ in range(100_000):
        inner = [inner]
    return inner


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


NOT_JSON = {
    "nan": float("nan"),
    "infinity": float("-inf"),
    "bytes": b"x",
    "an object": object(),
    "a generator": (n for n in "ab"),
    "an object in a set": {object()},
    "half a surrogate pair in a set": {"\ud83d"},
    "half a surrogate pair": "\ud83d",
    "a surrogate in a name": {"\udc80": 1},
    "keys that are no text": {(1, 2): 3},
    "keys that are the same text": {"1": 1, 1: 2},
    "a loop": endless(),
    "nested too deeply": nested(),
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_not_json_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="payload is not JSON"):
        encode_payload({"a": NOT_JSON[name]})
    with pytest.raises(PermanentError, match="result is not JSON"):
        encode_result({"a": NOT_JSON[name]})


class Colour(Enum):
    RED = "red"


@dataclass
class Size:
    width: int
    unit: str = "mm"


class Page(pydantic.BaseModel):
    url: str
    number: int = pydantic.Field(alias="no")
    at: datetime
    sizes: list[Size] = []


NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
ID = UUID("6f1f2bd0-38b2-4ac4-a1b3-3ab4c5e0f7d1")
PAGE = Page(url="x", no=2, at=NOW, sizes=[Size(3)])
DATA: list[tuple[Any, Any]] = [
    (NOW, "2026-11-16T09:30:00Z"),
    (date(2026, 11, 16), "2026-11-16"),
    (timedelta(minutes=1), "PT1M"),
    (ID, str(ID)),
    (Decimal("1.50"), "1.50"),
    (Path("a/b"), "a/b"),
    (Colour.RED, "red"),
    (Size(3), {"width": 3, "unit": "mm"}),
    ({"b", "a"}, ["a", "b"]),
    ((1, [ID]), [1, [str(ID)]]),
    ({Colour.RED: Size(1), ID: 2}, {"red": {"width": 1, "unit": "mm"}, str(ID): 2}),
    ({"a": 1, 1: None, False: NOW}, {"a": 1, "1": None, "false": "2026-11-16T09:30:00Z"}),
]


@pytest.mark.parametrize(("value", "plain"), DATA, ids=lambda value: type(value).__name__)
def test_data_is_stored_as_pydantic_writes_it(value: Any, plain: Any) -> None:
    assert json.loads(encode_result(value)) == plain
    assert json.loads(encode_payload({"a": value})) == {"a": plain}


def test_model_is_stored_as_it_is_read_again() -> None:
    assert Page.model_validate_json(encode_result(PAGE)) == PAGE
    assert encode_payload({"page": PAGE}) == (
        '{"page":{"at":"2026-11-16T09:30:00Z","no":2,"sizes":[{"unit":"mm","width":3}],"url":"x"}}'
    )


def test_payload_is_told_in_plain_values() -> None:
    assert plain_payload({"at": NOW, "n": 1})[0] == {"at": "2026-11-16T09:30:00Z", "n": 1}
    given = {"n": [1, 2]}
    assert plain_payload(given)[0] is given, "what is plain is not copied"


def test_place_of_what_is_not_json_is_named() -> None:
    with pytest.raises(ValidationError, match=r"pages\[1\]\.size is of type object"):
        encode_payload({"pages": [{"size": 1}, {"size": object()}]})
    with pytest.raises(PermanentError, match=r"width is of type bytes"):
        encode_result(Size(b"3"))  # type: ignore[arg-type]
    with pytest.raises(PermanentError, match=r"result is not JSON: \[0\]: .*unknown type"):
        encode_result([PAGE.model_copy(update={"url": object()})])


@pytest.mark.parametrize("payload", [[], "text", 1, ("a", 1), b"{}", True])
def test_payload_that_is_no_dict_is_refused(payload: Any) -> None:
    with pytest.raises(ValidationError, match="dict of arguments"):
        encode_payload(payload)


@pytest.mark.parametrize("name", [1, None, True, 2.5, b"a"])
def test_argument_names_must_be_text(name: Any) -> None:
    with pytest.raises(ValidationError, match="must be strings"):
        encode_payload({name: 1})


@pytest.mark.parametrize("result", [None, 0, False, "", [], {"a": [1]}, 2**80, "전"])
def test_any_json_is_a_result(result: Any) -> None:
    assert json.loads(encode_result(result)) == result
