"""The JSON object in what a model says: found whatever is around it, or an error that quotes
nothing."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock.answers.prompts import structured
from penstock.errors import ModelError

WORDS = st.text(st.characters(exclude_characters="{", exclude_categories=["Cs"]), max_size=200)


class Plan(BaseModel):
    queries: list[str]
    enough: str = ""


class Anything(BaseModel, extra="allow"):
    pass


@given(WORDS, st.lists(st.text(max_size=30), max_size=5), st.text(max_size=50), st.text())
def test_object_is_found_between_whatever_words(
    before: str, queries: list[str], enough: str, behind: str
) -> None:
    said = json.dumps({"queries": queries, "enough": enough})
    assert structured(before + said + behind, Plan) == Plan(queries=queries, enough=enough)


@given(st.text() | st.recursive(st.none() | st.text(), lambda one: st.lists(one)).map(json.dumps))
def test_whatever_is_said_ends_in_an_object_or_a_model_error(text: str) -> None:
    with suppress(ModelError):
        assert isinstance(structured(text, Anything), Anything)


@pytest.mark.parametrize(
    "text",
    [
        'Sure!\n```json\n{"queries": ["a"]}\n```\nDo you want more?',
        '{your plan} is {"queries": ["a"]}',
        'As in {"example": 1}: {"queries": ["a"]}',
        'As in {"example": {"queries": ["not this, it is inside"]}}: {"queries": ["a"]}',
        '{"queries": ["a"], "more": [1, 2]}{"queries": ["b"]}',
        '<think>a set {1, 2}</think>{"queries": ["a"]}',
        '{"queries": {"queries": ["a"]}',
    ],
)
def test_first_object_that_fits_is_taken(text: str) -> None:
    assert structured(text, Plan).queries == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "canary",
        '["canary"]',
        '{"queries": "canary"}',
        '{"queries": ["canary", ',
        '{"queries": ["canary", 5]}',
        "{" * 100_000,
        '{"canary":' * 100_000,
        "[" * 100_000,
        '{"canary": ' + "9" * 10_000 + "}",
    ],
)
def test_without_it_there_is_an_error_that_quotes_nothing(text: str) -> None:
    with pytest.raises(ModelError, match="without the JSON object") as caught:
        structured(text, Plan)
    error: Any = caught.value
    assert "canary" not in str(error)
    assert error.__suppress_context__ or error.__context__ is None
