"""Search by both finds what search by words or by vectors alone finds, on our own questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.retrieval import DATA, Task, Vectors, measure, target, tasks

TASKS = tasks(DATA)
ONE_LANGUAGE = [task for task in TASKS if "alone" in task.name or task.cross]


@pytest.fixture(scope="module")
def vectors() -> Iterator[Vectors]:
    vectors = Vectors()
    yield vectors
    vectors.close()


@pytest.mark.parametrize("task", ONE_LANGUAGE, ids=lambda task: task.name)
def test_both_together_are_not_worse_than_the_better_alone(task: Task, vectors: Vectors) -> None:
    figures = measure(task, vectors)
    assert figures["hybrid"].ndcg >= target(task, figures), figures


def test_own_questions_have_answers_and_are_asked_once() -> None:
    for task in TASKS:
        known = {document.id for document in task.documents}
        assert len(known) == len(task.documents)
        assert all(question.relevant <= known for question in task.questions)
        texts = [question.text for question in task.questions]
        assert len(texts) == len(set(texts))
    assert sum(len(task.questions) for task in ONE_LANGUAGE if not task.cross) >= 120
