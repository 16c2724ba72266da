"""The cut between what has to do with a question and what has not."""

from dataclasses import replace

import pytest

from penstock.retrieval.fusion import Fused
from penstock.retrieval.query import WeighedQuery, query_terms, weigh
from penstock.retrieval.relevance import Cutoff, relevant

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


def asked(words: str, known: int = 9) -> WeighedQuery:
    """A question whose first words are known, each in one chunk of a hundred."""
    query = query_terms(words)
    return weigh(query, dict.fromkeys(query.terms[:known], 1), 100)


def passes(
    one: Fused,
    held: set[str],
    cutoff: Cutoff = CUTOFF,
    query: WeighedQuery = QUESTION,
    *,
    language: str = "en",
    others: tuple[Fused, ...] = (),
) -> bool:
    hits = relevant([one, *others], query, lambda id_: held, lambda id_: language, cutoff)
    return "a" in {hit.id for hit in hits}


def test_words_alone_or_a_vector_alone_is_enough() -> None:
    assert passes(hit(None), {"otter"})
    assert passes(hit(0.4), set())
    assert not passes(hit(None), set())
    assert not passes(hit(0.39), set())


def test_too_little_of_both_is_enough_where_together_they_are_a_whole() -> None:
    four = asked("otter beaver mink stoat")
    assert not passes(hit(0.0), {"otter"}, query=four)  # a quarter of the words: half of the limit
    assert not passes(hit(0.19), {"otter"}, query=four)
    assert passes(hit(0.2), {"otter"}, query=four)
    assert not passes(hit(0.2, words=False), {"otter"}, query=four)


def test_a_passage_in_another_script_needs_two_thirds() -> None:
    assert passes(hit(0.27, other_script=True, words=False), set())
    assert not passes(hit(0.26, other_script=True, words=False), set())
    assert not passes(hit(0.27, words=False), set())


def test_a_cosine_up_to_the_floor_adds_nothing_to_the_words() -> None:
    four = asked("otter beaver mink stoat")
    floor = Cutoff(coverage=0.5, similarity=0.4, floor=0.2)
    assert not passes(hit(0.2), {"otter"}, floor, four)
    assert not passes(hit(0.29), {"otter"}, floor, four)
    assert passes(hit(0.31), {"otter"}, floor, four)


def test_nearness_begins_at_the_median_where_the_range_of_an_embedder_is_not_known() -> None:
    high = Cutoff(coverage=0.5, similarity=0.8, floor=None)
    hits = [hit(cosine) for cosine in (0.60, 0.61, 0.62, 0.75, 0.8)]
    one_of_six = weigh(query_terms("otter a1 b2 c3 d4 e5"), {}, 100)
    found = list(relevant(hits, one_of_six, lambda id_: {"otter"}, lambda id_: "", high))
    assert [one.vector_score for one in found] == [0.75, 0.8]


@pytest.mark.parametrize(("known", "least"), [(9, 0.4), (3, 0.4), (2, 0.504), (0, 0.68)])
def test_the_more_words_no_document_knows_the_nearer_a_passage_has_to_be(
    known: int, least: float
) -> None:
    query = asked("otter beaver mink stoat", known)
    assert query.unknown < 0.3 if known > 2 else query.unknown > 0.5
    assert passes(hit(least, words=False), set(), query=query)
    assert not passes(hit(least - 0.01, words=False), set(), query=query)


def test_words_that_no_document_knows_are_made_up_for_by_those_a_passage_holds() -> None:
    half = asked("otter beaver mink stoat", 2)  # the unknown ones weigh more than half: .57
    assert not passes(hit(None), {"otter"}, query=half)
    assert not passes(hit(0.2), {"otter"}, query=half)
    assert passes(hit(0.2), {"otter", "beaver"}, query=half)


def test_unknown_words_say_nothing_of_a_passage_in_another_language() -> None:
    german = asked("Wo lebt ein Fischotter?", 0)
    assert passes(hit(0.27, words=False), set(), query=german, language="en")
    assert not passes(hit(0.26, words=False), set(), query=german, language="en")
    for language in ("de", ""):
        assert not passes(hit(0.6, words=False), set(), query=german, language=language)
        assert passes(hit(0.69, words=False), set(), query=german, language=language)
    assert not passes(hit(0.6, words=False), set(), query=asked("otter", 0), language="de")


def test_a_passage_in_another_script_makes_up_for_them_beside_some_in_the_questions_own() -> None:
    unknown = asked("otter beaver mink stoat", 0)
    foreign, own = hit(0.3, other_script=True, words=False), replace(hit(0.0), id="b")
    assert passes(foreign, set(), query=unknown)
    assert not passes(foreign, set(), query=unknown, others=(own,))
    near = hit(0.47, other_script=True, words=False)
    assert passes(near, set(), query=unknown, others=(own,))


def test_unknown_words_ask_for_no_more_where_the_range_of_an_embedder_is_not_known() -> None:
    unknown = asked("otter beaver mink stoat", 0)
    high = Cutoff(coverage=0.5, similarity=0.8, floor=None)
    assert passes(hit(0.8, words=False), set(), high, unknown)
    assert passes(hit(0.1, words=False), set(), Cutoff(similarity=None, floor=None), unknown)


@pytest.mark.parametrize("cosine", [None, -1.0, 0.0])
def test_a_cutoff_of_zero_lets_everything_pass(cosine: float | None) -> None:
    assert passes(hit(cosine), set(), Cutoff(coverage=0.0))


def test_every_vector_passes_where_nothing_is_known_of_its_embedder() -> None:
    assert passes(hit(-0.2, words=False), set(), Cutoff(similarity=None, floor=None))
    assert not passes(hit(None), set(), Cutoff(similarity=None, floor=None))
