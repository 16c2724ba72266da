"""The cut between what has to do with a question and what has not."""

import pytest

from penstock.retrieval.fusion import Fused
from penstock.retrieval.query import WeighedQuery, query_terms, weigh
from penstock.retrieval.search import Cutoff, relevant

CUTOFF = Cutoff(coverage=0.5, similarity=0.4, floor=0.0)
QUESTION = weigh(query_terms("otter beaver"), {"otter": 10, "beaver": 10}, 100)


def hit(cosine: float | None, *, other_script: bool = False, words: bool = True) -> Fused:
    return Fused(
        id="a",
        score=1.0,
        text_rank=1 if words else None,
        text_score=1.0 if words else None,
        text_share=1.0,
        vector_rank=None if cosine is None else 1,
        vector_score=cosine,
        other_script=other_script,
    )


def passes(
    one: Fused, held: set[str], cutoff: Cutoff = CUTOFF, query: WeighedQuery = QUESTION
) -> bool:
    return bool(list(relevant([one], query, lambda id_: held, cutoff)))


def test_words_alone_or_a_vector_alone_is_enough() -> None:
    assert passes(hit(None), {"otter"})
    assert passes(hit(0.4), set())
    assert not passes(hit(None), set())
    assert not passes(hit(0.39), set())


def test_too_little_of_both_is_enough_where_together_they_are_a_whole() -> None:
    four = weigh(query_terms("otter beaver mink stoat"), dict.fromkeys("abcd", 0), 100)
    assert not passes(hit(0.0), {"otter"}, query=four)  # a quarter of the words: half of the limit
    assert not passes(hit(0.19), {"otter"}, query=four)
    assert passes(hit(0.2), {"otter"}, query=four)
    assert not passes(hit(0.2, words=False), {"otter"}, query=four)


def test_a_passage_in_another_script_needs_two_thirds() -> None:
    assert passes(hit(0.27, other_script=True, words=False), set())
    assert not passes(hit(0.26, other_script=True, words=False), set())
    assert not passes(hit(0.27, words=False), set())


def test_a_cosine_up_to_the_floor_adds_nothing_to_the_words() -> None:
    four = weigh(query_terms("otter beaver mink stoat"), dict.fromkeys("abcd", 0), 100)
    floor = Cutoff(coverage=0.5, similarity=0.4, floor=0.2)
    assert not passes(hit(0.2), {"otter"}, floor, four)
    assert not passes(hit(0.29), {"otter"}, floor, four)
    assert passes(hit(0.31), {"otter"}, floor, four)


def test_nearness_begins_at_the_median_where_the_range_of_an_embedder_is_not_known() -> None:
    high = Cutoff(coverage=0.5, similarity=0.8, floor=None)
    hits = [hit(cosine) for cosine in (0.60, 0.61, 0.62, 0.75, 0.8)]
    one_of_six = weigh(query_terms("otter a1 b2 c3 d4 e5"), {}, 100)
    found = list(relevant(hits, one_of_six, lambda id_: {"otter"}, high))
    assert [one.vector_score for one in found] == [0.75, 0.8]


@pytest.mark.parametrize("cosine", [None, -1.0, 0.0])
def test_a_cutoff_of_zero_lets_everything_pass(cosine: float | None) -> None:
    assert passes(hit(cosine), set(), Cutoff(coverage=0.0))


def test_every_vector_passes_where_nothing_is_known_of_its_embedder() -> None:
    assert passes(hit(-0.2, words=False), set(), Cutoff(similarity=None, floor=None))
    assert not passes(hit(None), set(), Cutoff(similarity=None, floor=None))
