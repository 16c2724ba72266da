"""The parts of ingestion, one behind the other: bytes to masked chunks that can be cited."""

import io

import pytest
from reportlab.pdfgen.canvas import Canvas

from penstock.documents.chunk import ChunkSettings, chunk
from penstock.documents.mask import mask
from penstock.documents.parse.pool import ParserPool
from tests.support import documents

SETTINGS = ChunkSettings(size=120, overlap=24, slack=8)
PHONE = "010-1234-5678"
EMAIL = "jane.doe@example.com"


def report(pages: int) -> bytes:
    """Each page names itself and is full of personal data."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.setTitle(f"Report for {EMAIL}")
    for number in range(1, pages + 1):
        for line in range(20):
            text = f"Page{number} line {line}: call {PHONE} or write to {EMAIL}, please."
            canvas.drawString(72, 760 - 20 * line, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


async def test_a_chunk_of_a_masked_pdf_cites_its_pages() -> None:
    async with ParserPool(size=1) as pool:
        parsed = await pool.parse(report(5))

    document, masked = mask.document(parsed)
    chunks = chunk(
        document.text,
        SETTINGS,
        keep=masked.labels,
        pages=document.pages,
        headings=document.headings,
    )

    assert document.title == "Report for [EMAIL]"
    assert masked.counts == {"phone": 100, "email": 100}
    assert "".join(document.text[each.fresh : each.end] for each in chunks) == document.text
    for each in chunks:
        assert each.tokens <= SETTINGS.size
        assert each.pages is not None
        named = [number for number in range(1, 6) if f"Page{number} line" in each.text]
        assert (named[0], named[-1]) == each.pages
        assert each.text.count("[PHONE]") == each.text.count("PHONE")
        assert each.text.count("[EMAIL]") == each.text.count("EMAIL")
        assert PHONE not in each.text
        assert EMAIL not in each.text


@pytest.mark.parametrize("name", documents.MAKERS)
async def test_every_format_becomes_chunks_without_loss(name: str) -> None:
    async with ParserPool(size=1) as pool:
        parsed = await pool.parse(documents.MAKERS[name]())

    document, masked = mask.document(parsed)
    chunks = chunk(document.text, SETTINGS, keep=masked.labels, headings=document.headings)

    assert "".join(document.text[each.fresh : each.end] for each in chunks) == document.text
    assert any(documents.JAPANESE in each.text for each in chunks)
