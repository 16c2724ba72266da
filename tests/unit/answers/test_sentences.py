"""Sentences and citations of answers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.answers.sentences import cited, sentences, unsupported


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("It is 3.5 m high. So.", ["It is 3.5 m high.", "So."]),
        ("Water [1]. Stone. [2] Sand.", ["Water [1].", "Stone. [2]", "Sand."]),
        ("See e.g. the wheel [1].", ["See e.g. the wheel [1]."]),
        ("- one [1]\n- two\n\nAnd three.", ["- one [1]", "- two", "And three."]),
        ("水車は回る。[1]石は動かない。[2][3]", ["水車は回る。[1]", "石は動かない。[2][3]"]),
        ("물이 돈다 [1]. 돌은 무겁다.", ["물이 돈다 [1].", "돌은 무겁다."]),
        ("「本当？」と言った。終わり", ["「本当？」", "と言った。", "終わり"]),
        ("", []),
        (" \n ... ", []),
    ],
)
def test_a_text_is_its_sentences_with_their_citations(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected", "numbers", "removed"),
    [
        ("So [1].", "So [1].", [1], 0),
        ("So[1, 2].", "So[1][2].", [1, 2], 0),
        ("So [2; 1,2].", "So [2][1].", [2, 1], 0),
        ("So [7].", "So.", [], 1),
        ("So [1, 7].", "So [1].", [1], 1),
        ("そう【1】。", "そう[1]。", [1], 0),
        ("そう【1、2】。", "そう[1][2]。", [1, 2], 0),
        ("[a] [] [1x] [-1] x[0]", "[a] [] [1x] [-1] x", [], 1),
        ("[link](http://x/1) [1](y)", "[link](http://x/1) [1](y)", [1], 0),
        ("[99999]", "[99999]", [], 0),
    ],
)
def test_citations_resolve_or_are_taken_out(
    text: str, expected: str, numbers: list[int], removed: int
) -> None:
    result = cited(text, {1, 2, 3})
    assert (result.text, [one.number for one in result.citations]) == (expected, numbers)
    assert result.removed == removed


@given(st.text(alphabet="ab .。\n[]【】0123456789,、あ"), st.sets(st.integers(0, 30)))
def test_whatever_is_written_citations_stand_where_they_say(text: str, known: set[int]) -> None:
    result = cited(text, known)
    for one in result.citations:
        assert result.text[one.start : one.end] == f"[{one.number}]"
        assert one.number in known
    spans = sentences(result.text)
    assert spans == sorted(spans)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert set(unsupported(result.text, result.citations)) <= set(spans)


def test_sentences_without_a_citation_are_found() -> None:
    text, citations, _ = cited("Yes [1]. No. 水車。[2]石。", {1, 2})
    assert [text[start:end] for start, end in unsupported(text, citations)] == ["No.", "石。"]
