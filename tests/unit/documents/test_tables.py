"""Tables: a chunk that begins within one has its header."""

import io

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.chunk import ChunkSettings, chunk
from penstock.documents.mask import mask, prepare
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.packing import (
    pack_chunks,
    pack_parsed,
    pack_uncut,
    unpack_chunks,
    unpack_parsed,
    unpack_uncut,
)
from penstock.documents.parse.read import read
from penstock.documents.parsed import Table
from penstock.documents.stored_chunks import cut
from penstock.documents.tokens import count_tokens
from penstock.model.document import NewChunk, StoredChunk
from penstock.research.reader import joined
from tests.support import documents

SETTINGS = ChunkSettings(size=100, overlap=20, slack=8)
HEAD = ("Part", "Contact", "Price")


def workbook(*, title: str = "", head: tuple[str, ...] = HEAD, rows: int = 60) -> bytes:
    book = openpyxl.Workbook()
    if title:
        book.active.append([title])
    book.active.append(head)
    for number in range(rows):
        book.active.append([f"Seal {number}", "jane@weir.example", number * 1.5])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def chunks_of(data: bytes) -> tuple[str, list[NewChunk]]:
    """As they are stored, and the text they are of, over both pipes."""
    parsed = unpack_parsed(*pack_parsed(read(data, ParseLimits())))
    uncut, settings = unpack_uncut(*pack_uncut(prepare(parsed, "", mask).uncut, SETTINGS))
    return uncut.text, unpack_chunks(uncut.text, *pack_chunks(cut(uncut, settings)))


@pytest.mark.parametrize("title", ["", "Price list of jane@weir.example"])
def test_every_chunk_of_a_sheet_has_the_header(title: str) -> None:
    _, (first, *others) = chunks_of(workbook(title=title))
    head = "Part | Contact | Price\n"
    if title:
        head = f"Price list of [EMAIL]\n{head}"
    assert len(others) > 5
    assert first.text.startswith(f"Sheet\n\n{head}Seal 0 | [EMAIL] | 0\n")
    for one in others:
        assert one.text.startswith(f"{head}Seal ")
        assert one.tokens == count_tokens(one.text) <= SETTINGS.size


def test_what_is_repeated_moves_no_offset_and_is_not_read_twice() -> None:
    text, chunks = chunks_of(workbook())
    stored = [
        StoredChunk(at, one.text, *one[1:3], one.tokens, None, (), "latin")
        for at, one in enumerate(chunks)
    ]
    assert joined(stored) == text
    assert text.count("Part | Contact | Price") == 1
    for one in chunks:
        assert one.text == one.repeated + text[one.start : one.end]


def test_chunks_stored_before_are_joined_as_ever() -> None:
    text, chunks = chunks_of(workbook())
    before = [
        StoredChunk(at, text[one.start : one.end], *one[1:3], one.tokens, None, (), "latin")
        for at, one in enumerate(chunks)
    ]
    assert joined(before) == text


def test_header_that_would_fill_a_chunk_is_not_repeated() -> None:
    _, (_, *others) = chunks_of(workbook(head=tuple(f"column number {n}" for n in range(20))))
    assert not any("column number" in one.text for one in others)


@pytest.mark.parametrize("name", ["csv", "docx", "html", "xlsx"])
def test_every_format_with_tables_tells_where_they_are(name: str) -> None:
    parsed = read(documents.MAKERS[name](), ParseLimits())
    gap = "," if name == "csv" else " | "
    table = parsed.tables[0]
    assert parsed.text[table.start : table.head_end] == gap.join(documents.CELLS[0])
    assert parsed.text[table.head_end : table.end].startswith("\n" + gap.join(documents.CELLS[1]))


@given(st.lists(st.text("ab |\n", min_size=1, max_size=60), min_size=1, max_size=30), st.data())
def test_wherever_tables_are_chunks_keep_their_limits_and_make_up_the_text(
    parts: list[str], data: st.DataObject
) -> None:
    text = "".join(parts)
    edges = data.draw(st.lists(st.integers(0, len(text)), max_size=9, unique=True))
    edges = sorted(edges)[: len(edges) // 3 * 3]
    tables = [Table(*edges[at : at + 3]) for at in range(0, len(edges), 3)]
    settings = ChunkSettings(size=24, overlap=5, slack=4)
    chunks = chunk(text, settings, tables=tables)
    assert "".join(text[one.fresh : one.end] for one in chunks) == (text if text.strip() else "")
    assert all(one.text.endswith(text[one.start : one.end]) for one in chunks)
    assert all(one.tokens <= settings.size for one in chunks)
