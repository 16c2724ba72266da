"""Answers without a model: which sentences are chosen."""

import pytest

from penstock.answers.extract import extract
from penstock.model.answer import Evidence

HANDBOOK = """# Handbook of the lower canal

## Opening the sluice

Open the sluice at dawn, a quarter turn at a time."""


def passage(text: str, start: int = 0, number: int = 1) -> Evidence:
    end = start + len(text)
    return Evidence(number, "default", "a", "", "", 0, start, end, None, text, 0.5, "", 1)


def test_a_heading_is_no_answer_although_it_has_the_words() -> None:
    written = extract("opening the sluice", [passage(HANDBOOK)])
    assert written.text == "Open the sluice at dawn, a quarter turn at a time. [1]"
    assert [citation.number for citation in written.citations] == [1]


def test_headings_alone_are_better_than_nothing() -> None:
    written = extract("opening the sluice", [passage("## Opening the sluice")])
    assert written.text == "## Opening the sluice [1]"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "What dividend does the board propose?",
            "The board proposes a dividend of CHF 2.35 per share. [1]",
        ),
        (
            "By how much does the coating reduce mass loss?",
            "A coating of carbide, 120 micrometres thick, reduces mass loss by 61 percent. [1]",
        ),
        ("Who is the CFO?", "The CFO, Petra Ziegler, joined the works from Aare Kraft. [1]"),
    ],
)
def test_a_sentence_is_quoted_whole_although_it_goes_over_several_lines(
    question: str, expected: str
) -> None:
    text = (
        "Steinmatt had its best year since the dam was built. The board proposes a dividend\n"
        "of CHF 2.35 per share. The loan was paid back in March, a year ahead of the plan.\n"
        "A coating of carbide, 120 micrometres thick, reduces mass loss by 61\n"
        "percent. It is sprayed onto the runner in the hall at Thun. The CFO, Petra Ziegler,\n"
        "joined the works from Aare Kraft.\n"
    )
    assert extract(question, [passage(text)]).text == expected


def test_items_and_rows_are_quoted_one_by_one() -> None:
    text = "- seal kit in the red cabinet\n- shear pin in the blue cabinet\n\n"
    text += "Part | Place\nseal | hall"
    assert (
        extract("shear pin cabinet", [passage(text)]).text == "- shear pin in the blue cabinet [1]"
    )
    assert extract("seal hall", [passage(text)]).text.startswith("seal | hall [1]")


def test_the_rest_of_a_sentence_that_a_passage_begins_with_is_no_quote() -> None:
    rest = passage("kit has the part number SK-2305. The seal kit is in the hall.", start=900)
    assert extract("seal kit part number", [rest]).text == "The seal kit is in the hall. [1]"
    whole = passage("The new seal kit has the part number SK-2305.", number=2)
    assert extract("seal kit part number", [rest, whole]).text == f"{whole.text} [2]"
