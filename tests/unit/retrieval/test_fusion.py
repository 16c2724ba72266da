"""One order out of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.retrieval.fusion import Fused, RankedHit, Weights, fuse
from penstock.retrieval.query import Query, WeighedQuery, weigh

QUESTION = weigh(Query("old pump", ("old", "pump"), "latin"), {"old": 10, "pump": 10}, 1000)
"""Its ideal is twice the weight of one term."""
ONE_TERM = QUESTION.ideal / 2


def text(*scores: float, script: str = "latin") -> list[RankedHit]:
    return [RankedHit(f"t{at}", score, script) for at, score in enumerate(scores)]


def vector(*scores: float, script: str = "latin") -> list[RankedHit]:
    return [RankedHit(f"v{at}", score, script) for at, score in enumerate(scores)]


def order(hits: Sequence[Fused]) -> list[str]:
    return [hit.id for hit in hits]


SCRIPTS = ("latin", "han", "hangul", "")
hits = st.lists(
    st.builds(
        lambda number, score: RankedHit(f"c{number}", score, SCRIPTS[number % 4]),
        st.integers(0, 11),
        st.floats(0, 50) | st.sampled_from([math.nan, math.inf]),
    ),
    max_size=20,
)


def test_full_match_of_words_beats_the_nearest_vector() -> None:
    found = fuse([RankedHit("words", QUESTION.ideal, "latin")], vector(0.9, 0.5, 0.1), QUESTION)
    assert order(found)[0] == "words"


def test_vectors_order_what_words_leave_open() -> None:
    texts = [RankedHit("a", ONE_TERM, "latin"), RankedHit("b", ONE_TERM, "latin")]
    vectors = [
        RankedHit("b", 0.8, "latin"),
        RankedHit("a", 0.4, "latin"),
        RankedHit("c", 0.3, "latin"),
    ]
    assert order(fuse(texts, vectors, QUESTION)) == ["b", "a", "c"]


def test_share_of_one_rare_name_does_not_outweigh_the_vectors() -> None:
    """A Japanese question about Linux: of its terms the English chunks hold only that one."""
    terms = ("linux", *(f"t{number}" for number in range(20)))
    question = weigh(Query("", terms, "han"), {"linux": 200}, 1000)
    name = RankedHit("name", question.weights["linux"], "latin")
    found = fuse(
        [name], [RankedHit("near", 0.7, "latin"), RankedHit("far", 0.2, "latin")], question
    )
    assert order(found)[0] == "near"


def test_passage_in_another_script_is_not_punished_for_lacking_the_words() -> None:
    """Some passages share the question's common words, and none of them stands out."""
    texts = text(*(share * QUESTION.ideal for share in (0.42, 0.4, 0.38)))
    vectors = [
        RankedHit("near", 0.8, "han"),
        RankedHit("mid", 0.5, "latin"),
        RankedHit("t0", 0.3, "latin"),
    ]
    found = fuse(texts, vectors, QUESTION)
    assert order(found) == ["near", "t0", "t1", "t2", "mid"]
    assert [hit.other_script for hit in found] == [True, False, False, False, False]


def test_passage_that_stands_out_by_its_words_beats_a_near_vector_in_another_script() -> None:
    texts = text(*(share * QUESTION.ideal for share in (0.9, 0.4, 0.38)))
    vectors = [RankedHit("near", 0.8, "han"), RankedHit("t0", 0.3, "latin")]
    assert order(fuse(texts, vectors, QUESTION)) == ["t0", "near", "t1", "t2"]


def test_text_hit_in_another_script_is_not_lifted_where_vectors_do_not_know_it() -> None:
    texts = [*text(3.0, 2.9), RankedHit("name", 0.1, "han")]
    assert order(fuse(texts, vector(0.5, 0.1), QUESTION))[-1] != "t0"
    assert order(fuse(texts, [], QUESTION)) == ["t0", "t1", "name"]


def test_without_vectors_the_order_is_that_of_the_words() -> None:
    texts = [RankedHit("a", 3.0, "latin"), RankedHit("b", 2.0, "han"), RankedHit("c", 1.0, "latin")]
    found = fuse(texts, [], QUESTION)
    assert order(found) == ["a", "b", "c"]
    assert all(hit.vector_rank is None and hit.vector_score is None for hit in found)


def test_without_words_the_order_is_that_of_the_vectors() -> None:
    nothing = weigh(Query("", (), "latin"), {}, 0)
    found = fuse([], vector(0.1, 0.9, 0.5), nothing)
    assert order(found) == ["v1", "v2", "v0"]
    assert all(hit.text_rank is None and hit.text_score is None for hit in found)


def test_nothing_found_is_nothing() -> None:
    assert fuse([], [], QUESTION) == []


def test_both_ranks_and_scores_are_told() -> None:
    found = fuse(
        [RankedHit("a", 2.0, "latin"), RankedHit("b", 4.0, "latin")],
        [RankedHit("a", 0.5, "latin"), RankedHit("c", 0.25, "latin")],
        QUESTION,
    )
    by_id = {hit.id: hit for hit in found}
    assert (by_id["a"].text_rank, by_id["a"].text_score) == (2, 2.0)
    assert (by_id["a"].vector_rank, by_id["a"].vector_score) == (1, 0.5)
    assert (by_id["b"].text_rank, by_id["b"].vector_rank) == (1, None)
    assert (by_id["c"].text_rank, by_id["c"].vector_rank) == (None, 2)
    assert by_id["a"].text_share == pytest.approx(2.0 / QUESTION.ideal)


def test_ties_are_broken_the_same_way_whatever_the_order_of_hits() -> None:
    texts = [RankedHit(name, 1.0, "latin") for name in "dacb"]
    assert order(fuse(texts, [], QUESTION)) == order(fuse(texts[::-1], [], QUESTION))


def test_weights_decide_who_leads() -> None:
    texts, vectors = text(QUESTION.ideal, 1.0), vector(0.9, 0.1)
    assert order(fuse(texts, vectors, QUESTION, 1, Weights(text=1, vector=0))) == ["t0"]
    assert order(fuse(texts, vectors, QUESTION, 1, Weights(text=0, vector=1))) == ["v0"]


def test_scale_of_an_embedder_does_not_matter() -> None:
    """Some give cosines from 0.2 to 0.6, others from 0.80 to 0.84."""
    texts = [RankedHit("v2", ONE_TERM / 4, "latin")]
    wide = fuse(texts, vector(0.6, 0.4, 0.2), QUESTION)
    narrow = fuse(texts, vector(0.84, 0.82, 0.80), QUESTION)
    assert order(wide) == order(narrow)


def test_negated_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="negate"):
        fuse(text(-3.2), [], QUESTION)


@given(hits, hits, st.integers(0, 19), st.floats(0, 20))
def test_more_evidence_by_words_never_lowers_a_hit(
    texts: list[RankedHit], vectors: list[RankedHit], which: int, more: float
) -> None:
    texts = list({hit.id: hit for hit in texts if math.isfinite(hit.score)}.values())
    if not texts:
        return
    lifted = texts[which % len(texts)]
    others = [hit for hit in texts if hit is not lifted]
    before = order(fuse(texts, vectors, QUESTION, 40))
    raised = [*others, replace(lifted, score=lifted.score + more)]
    after = order(fuse(raised, vectors, QUESTION, 40))
    assert after.index(lifted.id) <= before.index(lifted.id)


@given(hits)
def test_side_that_finds_nothing_changes_nothing(found: list[RankedHit]) -> None:
    alone = {hit.id: hit for hit in sorted(found, key=_score) if math.isfinite(hit.score)}
    by_score = sorted(alone.values(), key=lambda hit: (-hit.score, hit.id))
    wanted = [hit.id for hit in by_score]
    assert order(fuse(found, [], QUESTION, 40)) == wanted
    assert order(fuse([], found, QUESTION, 40)) == wanted


def _score(hit: RankedHit) -> float:
    return hit.score if math.isfinite(hit.score) else -1


def test_only_near_vectors_count_where_words_leave_little_open() -> None:
    """Half way between the worst and the best is a quarter of the way up."""
    texts = [RankedHit("words", 0.1 * QUESTION.ideal, "latin")]
    vectors = [
        RankedHit("best", 0.8, "latin"),
        RankedHit("half", 0.5, "latin"),
        RankedHit("worst", 0.2, "latin"),
    ]
    assert order(fuse(texts, vectors, QUESTION)) == ["best", "words", "half", "worst"]


@given(hits, hits, st.integers(0, 30))
def test_whatever_comes_in_each_chunk_comes_out_once_with_a_score(
    texts: list[RankedHit], vectors: list[RankedHit], limit: int
) -> None:
    found = fuse(texts, vectors, QUESTION, limit)
    sound = {hit.id for hit in (*texts, *vectors) if math.isfinite(hit.score)}
    assert len(found) == min(limit, len(sound))
    assert set(order(found)) <= sound
    assert all(math.isfinite(hit.score) for hit in found)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert found == fuse(texts[::-1], vectors[::-1], QUESTION, limit)


def test_empty_corpus_has_an_ideal_of_nothing_and_no_division_by_it() -> None:
    empty = WeighedQuery(Query("", (), ""), ())
    assert order(fuse(text(1.0), vector(0.5), empty)) == ["t0", "v0"]
