"""Errands and rounds on their way: the same on the other side, or refused."""

from __future__ import annotations

import filecmp
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ValidationError
from penstock.librarian.messages import (
    MAX_CHARACTERS,
    MAX_ITEMS,
    MESSAGE_BYTES,
    errand_message,
    errand_of,
    round_message,
    round_of,
)
from penstock.librarian.v1 import librarian_pb2 as pb
from penstock.model.answer import Evidence, Plan, Round
from penstock.ports.librarian import Errand
from tests.support.librarians import PASSAGE
from tools.proto import generate

ROOT = Path(__file__).parents[3]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TEXTS = st.lists(TEXT, max_size=4).map(tuple)
ERRAND = Errand("acme", "Why?", Plan(("why",), "enough"), 5.0)
ROUND = Round(1, ("why",), (PASSAGE,), (), True)


@st.composite
def passages(draw: st.DrawFn) -> tuple[Evidence, ...]:
    numbers = draw(st.lists(st.integers(1, 2**31 - 1), max_size=4, unique=True))
    return tuple(
        Evidence(
            number,
            collection=draw(TEXT),
            document=draw(TEXT),
            title=draw(TEXT),
            source=draw(TEXT),
            chunk=draw(st.integers(0, 2**31 - 1)),
            start=(start := draw(st.integers(0, 2**40))),
            end=start + draw(st.integers(0, 2**40)),
            pages=(pages := draw(st.none() | st.integers(1, 99).map(lambda at: (at, at + 1)))),
            text=draw(TEXT),
            score=draw(st.floats(allow_nan=False, allow_infinity=False)),
            query=draw(TEXT),
            round=draw(st.integers(0, 5)),
            page_starts=() if pages is None else draw(st.sampled_from([(), (start,)])),
        )
        for number in numbers
    )


ERRANDS = st.builds(
    Errand,
    tenant=TEXT.filter(bool),
    question=TEXT.filter(lambda text: bool(text.strip())),
    plan=st.builds(Plan, queries=TEXTS, enough=TEXT),
    ends_at=st.just(5.0),
    collections=st.none() | TEXTS,
    found=passages(),
    rounds_done=st.integers(0, 5),
    asked=TEXTS,
)
ROUNDS = st.builds(
    Round,
    number=st.integers(1, 5),
    queries=TEXTS,
    evidence=passages(),
    missing=TEXTS,
    enough=st.booleans(),
    note=TEXT,
    next=TEXTS,
)


@given(ERRANDS)
def test_errand_is_the_same_on_the_other_side(errand: Errand) -> None:
    data = errand_message(errand).SerializeToString()
    assert errand_of(pb.Errand.FromString(data), 5.0) == errand


@given(ROUNDS)
def test_round_is_the_same_on_the_other_side(turn: Round) -> None:
    assert round_of(pb.Round.FromString(round_message(turn).SerializeToString())) == turn


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": ""},
        {"question": " \n"},
        {"question": "x" * (MAX_CHARACTERS + 1)},
        {"question": "half a character: \ud800"},
        {"plan": Plan(("x",) * (MAX_ITEMS + 1))},
        {"plan": Plan((), "x" * (MAX_CHARACTERS + 1))},
        {"collections": ("x",) * (MAX_ITEMS + 1)},
        {"rounds_done": -1},
        {"rounds_done": 6},
        {"found": (PASSAGE, PASSAGE)},
        {"found": tuple(replace(PASSAGE, number=n) for n in range(1, MAX_ITEMS + 2))},
    ],
    ids=str,
)
def test_errand_over_the_limits_is_not_sent(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        errand_message(replace(ERRAND, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"number": 0},
        {"chunk": -1},
        {"chunk": 2**31},
        {"start": 3, "end": 2},
        {"start": -1},
        {"end": 2**63},
        {"pages": (0, 1)},
        {"pages": (3, 2)},
        {"score": math.nan},
        {"score": math.inf},
        {"text": "x" * (MAX_CHARACTERS + 1)},
    ],
    ids=str,
)
def test_passage_that_is_none_is_not_sent(change: dict[str, Any]) -> None:
    broken = replace(PASSAGE, **change)
    with pytest.raises(ValidationError):
        round_message(replace(ROUND, evidence=(broken,)))
    with pytest.raises(ValidationError):
        errand_message(replace(ERRAND, found=(broken,)))


@pytest.mark.parametrize("number", [-1, 0, 6])
def test_round_that_cannot_be_is_refused_by_both_sides(number: int) -> None:
    with pytest.raises(ValidationError, match="there is no round"):
        round_message(replace(ROUND, number=number))
    with pytest.raises(ValidationError, match="there is no round"):
        round_of(pb.Round(number=number))


def test_message_is_never_larger_than_the_other_side_takes() -> None:
    size = MAX_CHARACTERS // 2
    many = tuple(
        replace(PASSAGE, number=n, text="x" * size) for n in range(1, MESSAGE_BYTES // size + 2)
    )
    with pytest.raises(ValidationError, match="bytes"):
        round_message(replace(ROUND, evidence=many))


def test_empty_errand_is_refused() -> None:
    with pytest.raises(ValidationError):
        errand_of(pb.Errand(), 5.0)


def test_generated_code_is_up_to_date(tmp_path: Path) -> None:
    """If it is not: `make proto`."""
    generate(tmp_path)
    made = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.py*"))
    assert made
    for name in made:
        assert filecmp.cmp(tmp_path / name, ROOT / "src" / name, shallow=False), name
