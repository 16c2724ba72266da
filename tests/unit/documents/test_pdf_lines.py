"""PDF: the lines of a paragraph are one text again, and nothing else is put together."""

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table

from penstock.documents.line_joins import Gap, TextLine, gaps, soft_breaks
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pdf_lines import Hyphens
from penstock.documents.parse.read import read
from tests.support.documents import pdf_of

LIMITS = ParseLimits()
STYLES = getSampleStyleSheet()
BODY = STYLES["BodyText"]
PROSE = (
    "The board proposes a dividend of CHF 2.35 per share. The CFO, Petra Ziegler, said that a "
    "coating of 120 micrometres reduces mass loss by 61 percent. Steinmatt made 212 GWh in 2025, "
    "more than in any year since the Second World War, when the dam above Thun was raised by 4 m."
)


def text_of(*parts: Flowable) -> str:
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer, invariant=1).build(list(parts))
    return read(buffer.getvalue(), LIMITS).text


@pytest.mark.parametrize("alignment", [0, 4], ids=["ragged", "justified"])
def test_lines_of_a_paragraph_are_joined_and_paragraphs_stay_apart(alignment: int) -> None:
    style = ParagraphStyle("own", parent=BODY, alignment=alignment)
    parts = [Paragraph("Annual report", STYLES["Heading1"]), *[Paragraph(PROSE, style)] * 3]
    assert text_of(*parts) == f"Annual report\n\n{PROSE}\n\n{PROSE}\n\n{PROSE}"


def test_paragraphs_that_only_an_indent_tells_apart_stay_apart() -> None:
    style = ParagraphStyle("own", parent=BODY, spaceBefore=0, firstLineIndent=18)
    assert text_of(*[Paragraph(PROSE, style)] * 3) == "\n\n".join([PROSE] * 3)


def test_rows_items_and_short_lines_stay_lines() -> None:
    item = (
        "\u2022 a seal kit for the turbine in hall two, which has to be ordered three months ahead"
    )
    item += " from the works in Thun"
    style = ParagraphStyle("item", parent=BODY, leftIndent=12, firstLineIndent=-12, spaceBefore=0)
    address = "Steinmatt AG<br/>Weirstrasse 12<br/>3600 Thun<br/>Switzerland"
    text = text_of(
        Paragraph(PROSE, BODY),
        Table(
            [["part", "count", "price"], ["seal kit", "12", "157.50"], ["shear pin", "7", "3.20"]]
        ),
        Paragraph(item, style),
        Paragraph("\u2022 shear pins", style),
        Paragraph(address, BODY),
    )
    assert text == (
        f"{PROSE}\n\npart count price\nseal kit 12 157.50\nshear pin 7 3.20\n\n"
        f"{item}\n\u2022 shear pins\n\nSteinmatt AG\nWeirstrasse 12\n3600 Thun\nSwitzerland"
    )


def test_lines_of_a_script_without_spaces_are_joined_without_one() -> None:
    lines = [
        TextLine("水門は夜明けに開く。番人は時刻を", 0, 160, 40, 10),
        TextLine("帳面に書く。", 0, 60, 26, 10),
        TextLine("終わり", 0, 30, 0, 10),
    ]
    assert gaps(lines) == [Gap.NONE, Gap.PARAGRAPH]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["the infor-", "mation is old"], "the information is old"),
        (["the kit SK-", "2305 is new"], "the kit SK-2305 is new"),
        (["an Anglo-", "Saxon weir"], "an Anglo-Saxon weir"),
        (["on pages 12-", "14 of it"], "on pages 12-14 of it"),
        (["the pre-", "and post-war dams"], "the pre- and post-war dams"),
        (["a state-of-the-", "art weir"], "a state-of-the-art weir"),
        (["a well-", "known weir"], "a well-known weir"),
        (["run-off is water, and run-", "off counts"], "run-off is water, and run-off counts"),
        (["write to jane.doe@", "weir.example at once"], "write to jane.doe@weir.example at once"),
        (["see https://weir.example/", "gates/2 and"], "see https://weir.example/gates/2 and"),
        (["a weir - not a dam -", "is low"], "a weir - not a dam - is low"),
    ],
)
def test_hyphens_at_the_ends_of_lines_are_mended(lines: Sequence[str], expected: str) -> None:
    assert read(pdf_of(lines), LIMITS).text == expected


def test_how_the_document_spells_a_word_decides() -> None:
    hyphens = Hyphens()
    assert hyphens.mended("the co", "operation") == ""
    hyphens.learn("A long co-operation.")
    assert hyphens.mended("the co", "operation") == "-"
    hyphens.learn("Cooperation it is.")
    assert hyphens.mended("the co", "operation") == ""


def test_headings_and_pages_are_found_in_the_joined_text() -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for number in (1, 2):
        canvas.bookmarkPage(f"p{number}")
        title = f"Chapter {number} of the book in which gates are told of"
        canvas.addOutlineEntry(title, f"p{number}")
        canvas.setFont("Helvetica", 20)
        canvas.drawString(72, 760, f"Chapter {number} of the book in which")
        canvas.drawString(72, 736, "gates are told of")
        canvas.setFont("Helvetica", 10)
        for row, line in enumerate(("The gate opens at dawn, when the keeper has", "come.")):
            canvas.drawString(72, 700 - 12 * row, line)
        canvas.showPage()
    canvas.save()
    parsed = read(buffer.getvalue(), LIMITS)
    assert [parsed.text[page.start : page.end].strip() for page in parsed.pages] == [
        f"Chapter {number} of the book in which gates are told of\n\n"
        "The gate opens at dawn, when the keeper has come."
        for number in (1, 2)
    ]
    assert all(parsed.text.startswith(one.title, one.start) for one in parsed.headings)


NUMBERS = st.floats(0, 600, allow_nan=False)
LINES = st.builds(
    TextLine,
    st.text("aA1-. |水", min_size=1).filter(str.strip),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.floats(0.1, 40),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(LINES, max_size=30))
def test_there_is_a_gap_between_any_two_lines(lines: list[TextLine]) -> None:
    assert len(gaps(lines)) == max(0, len(lines) - 1)


@given(st.text("aA1-. |\n\t水#"))
def test_soft_breaks_are_line_breaks(text: str) -> None:
    assert all(text[at] == "\n" for at in soft_breaks(text))
