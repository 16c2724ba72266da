"""Payloads and results as JSON text."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.errors import (
    PayloadTooLarge,
    PermanentError,
    ResultTooLarge,
    ValidationError,
)
from penstock.model.job import PAYLOAD_LIMIT, RESULT_LIMIT
from penstock.model.payload import encode_payload, encode_result

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
    "a set": {1},
    "a date": datetime.now(UTC),
    "an object": object(),
    "half a surrogate pair": "\ud83d",
    "a surrogate in a name": {"\udc80": 1},
    "keys that cannot be sorted": {"a": 1, 1: 2},
    "keys that are no text": {(1, 2): 3},
    "a loop": endless(),
    "nested too deep": nested(),
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_not_json_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="payload is not JSON"):
        encode_payload({"a": NOT_JSON[name]})
    with pytest.raises(PermanentError, match="result is not JSON"):
        encode_result({"a": NOT_JSON[name]})


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
