"""What answers cite."""

from dataclasses import replace
from typing import Literal

import pytest

from penstock.answers.event_text import cited_evidence
from penstock.answers.extract import extract
from penstock.model.answer import Answer, Evidence, Round, Sources

PAGES = (
    "The pump delivers 42 litres. ",
    "Grease the bearing once\na month. Never run it ",
    "dry. The warranty lasts 24 months.",
)
TEXT = "".join(PAGES)
HEAD = "Model | Flow\n"
"""Of a table that the passage begins in the middle of."""
START = 1000


def answered(
    question: str, starts: tuple[int, ...], mode: Literal["model", "extractive"] = "extractive"
) -> Answer:
    known = ("default", "a", "Manual", "", 0, START, START + len(TEXT), (4, 6))
    one = Evidence(1, *known, HEAD + TEXT, 0.5, "q", 1, starts)
    written = extract(question, [one])
    asked = Answer("t", "i", question, Sources.DOCUMENTS, None, 0.0, 0.0, mode=mode)
    found = Round(1, (question,), (one,), (), enough=True)
    return replace(asked, text=written.text, citations=written.citations, rounds=(found,))


STARTS = (START + len(PAGES[0]), START + len(PAGES[0] + PAGES[1]))


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("What does the pump deliver?", (4, 4)),
        ("When is the bearing greased?", (5, 5)),
        ("How long is the warranty?", (6, 6)),
        ("May it run dry?", (5, 6)),
        ("What does the pump deliver, and how long is the warranty?", (4, 6)),
    ],
)
def test_pages_are_those_of_the_sentences_that_are_quoted(
    question: str, pages: tuple[int, int]
) -> None:
    (cited,) = cited_evidence(answered(question, STARTS))
    assert cited.pages == pages


def test_pages_are_those_of_the_passage_where_it_is_not_known_what_is_on_which() -> None:
    question = "How long is the warranty?"
    (stored_before,) = cited_evidence(answered(question, ()))
    (by_model,) = cited_evidence(answered(question, STARTS, mode="model"))
    assert stored_before.pages == by_model.pages == (4, 6)
