"""Answers without a model: which sentences are chosen."""

from dataclasses import replace

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


FALCON = """# Falcon pump

The Falcon pump delivers 42 litres per minute. Its impeller is made of bronze.

## Warranty

The warranty lasts 24 months from the date of purchase."""
MANUAL = """Pump P-300
The pump P-300 delivers 42 litres per minute at 3 bar. Its impeller is made of bronze.

Maintenance
Replace the shaft seal every 4000 operating hours. Grease the bearing with lithium grease.

Warranty
The warranty lasts 24 months and does not cover the housing.
P-200 25 6.3
P-300 42 9.8"""
DELIVERY = "Delivery takes five working days inside Europe."


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "How long is the warranty of the Falcon pump?",
            "The warranty lasts 24 months from the date of purchase. [1]",
        ),
        ("What is the impeller of the Falcon pump made of?", "Its impeller is made of bronze. [1]"),
        ("What is the Falcon pump?", "The Falcon pump delivers 42 litres per minute. [1]"),
    ],
)
def test_what_is_asked_decides_and_not_the_subject_that_all_sentences_have(
    question: str, expected: str
) -> None:
    assert extract(question, [passage(FALCON)]).text == expected


def test_of_two_documents_alike_the_one_that_is_named_answers() -> None:
    eagle = FALCON.replace("Falcon", "Eagle").replace("24", "36")
    found = [passage(eagle), passage(FALCON, number=2)]
    written = extract("How long is the warranty of the Falcon pump?", found)
    assert written.text == "The warranty lasts 24 months from the date of purchase. [2]"


@pytest.mark.parametrize("title", ["Pump P-300 manual", "scan.pdf"])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "What is the warranty of the P-300?",
            "The warranty lasts 24 months and does not cover the housing. [1]",
        ),
        ("Which grease does the P-300 need?", "Grease the bearing with lithium grease. [1]"),
        (
            "How often must the shaft seal of the P-300 be replaced?",
            "Replace the shaft seal every 4000 operating hours. [1]",
        ),
    ],
)
def test_a_part_number_is_one_word_and_a_line_of_names_no_answer(
    question: str, expected: str, title: str
) -> None:
    assert extract(question, [replace(passage(MANUAL), title=title)]).text == expected


def test_each_of_two_questions_is_answered() -> None:
    found = [passage(MANUAL), passage(DELIVERY, number=2)]
    warranty = "The warranty lasts 24 months and does not cover the housing. [1]"
    for question in (
        "How long is the warranty and how long is delivery?",
        "How long is the warranty? How long is delivery?",
    ):
        assert extract(question, found).text == f"{warranty}\n{DELIVERY} [2]"


def test_a_sentence_that_confirms_the_question_is_an_answer() -> None:
    text = "Steel pumps\nThe pump is made of steel.\nIt weighs 9 kg."
    assert extract("Is the pump made of steel?", [passage(text)]).text.startswith(
        "The pump is made of steel. [1]"
    )
