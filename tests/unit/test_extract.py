"""Answers without a model: which sentences are chosen."""

from penstock.answers.extract import extract
from penstock.model.answer import Evidence

HANDBOOK = """# Handbook of the lower canal

## Opening the sluice

Open the sluice at dawn, a quarter turn at a time."""


def passage(text: str) -> Evidence:
    return Evidence(1, "default", "a", "", "", 0, 0, len(text), None, text, 0.5, "", 1)


def test_a_heading_is_no_answer_although_it_has_the_words() -> None:
    written = extract("opening the sluice", [passage(HANDBOOK)])
    assert written.text == "Open the sluice at dawn, a quarter turn at a time. [1]"
    assert [citation.number for citation in written.citations] == [1]


def test_headings_alone_are_better_than_nothing() -> None:
    written = extract("opening the sluice", [passage("## Opening the sluice")])
    assert written.text == "## Opening the sluice [1]"
