"""How well the cutoff tells questions that our documents answer from others."""

from collections.abc import Iterator

import pytest

from benchmarks import retrieval
from penstock.retrieval.relevance import Cutoff

OFF = Cutoff(coverage=0.0)


@pytest.fixture(scope="module")
def vectors() -> Iterator[retrieval.Vectors]:
    vectors = retrieval.Vectors()
    yield vectors
    vectors.close()


@pytest.mark.parametrize(
    ("kind", "own", "every", "passages"),
    [
        ("foreign to all documents", 0.28, 0.48, 0.6),
        ("off the subject", 0.35, 0.51, 0.7),
        ("of both kinds, seen before", 0.45, 0.59, 1.0),
    ],
)
def test_nothing_relevant_means_nothing_found_for_most_of_what_no_document_is_about(
    vectors: retrieval.Vectors, kind: str, own: float, every: float, passages: float
) -> None:
    # Decision 59 has the figures; what still finds something has a passage or two that come near.
    found = retrieval.found_without_answer(kind, vectors, Cutoff())
    assert found.own <= own
    assert found.every <= every
    assert found.passages <= passages
    assert retrieval.found_without_answer(kind, vectors, OFF).own == 1.0


def test_fewer_passages_are_found_near_the_subject_than_without_a_cutoff(
    vectors: retrieval.Vectors,
) -> None:
    found = retrieval.found_without_answer("near the subject", vectors, Cutoff())
    assert found.passages < 2.6
    assert retrieval.found_without_answer("near the subject", vectors, OFF).passages == 10.0


@pytest.mark.parametrize("language", ["en", "ja", "ko"])
def test_answers_are_not_lost_to_the_cutoff(vectors: retrieval.Vectors, language: str) -> None:
    tasks = retrieval.tasks(retrieval.DATA)
    (task,) = [one for one in tasks if one.name == f"{language}, alone"]
    documents = retrieval.Corpus(task.documents, vectors)

    def ndcg(cutoff: Cutoff) -> float:
        return retrieval.figures_of(
            [
                (retrieval.hybrid(documents, one.text, cutoff)[:10], one.relevant)
                for one in task.questions
            ]
        ).ndcg

    assert ndcg(Cutoff()) >= ndcg(OFF) - 0.016


def test_answers_in_another_language_of_the_same_script_are_found(
    vectors: retrieval.Vectors,
) -> None:
    # No document knows the words of such a question: that must not count against it.
    assert retrieval.found_in_another_language(vectors, Cutoff()) >= 0.71
