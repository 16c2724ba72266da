"""Readers: what comes out of each format, and what each way of being broken is called."""

import io
import random
import sys
import time
import unicodedata
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.parse.draft import Draft, clean
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.read import read
from penstock.documents.parsed import Parsed
from penstock.errors import ConfigError, ParserError
from tests.support import documents
from tests.support.documents import CELLS, MAKERS, MIMES, SENTENCES, TITLE, zipped

LIMITS = ParseLimits()
FORMATS = list(MAKERS)


def reason(data: bytes, limits: ParseLimits = LIMITS) -> str:
    with pytest.raises(ParserError) as caught:
        read(data, limits)
    assert caught.value.retryable is False
    assert str(caught.value)
    return caught.value.reason


def titles(parsed: Parsed) -> list[tuple[int, str]]:
    for heading in parsed.headings:
        assert heading.title in parsed.text[heading.start : heading.start + len(heading.title) + 8]
    return [(heading.level, heading.title) for heading in parsed.headings]


def unpacked(data: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed_with(name: str, content: bytes) -> bytes:
    """A Word document in which one part is replaced."""
    return zipped({**unpacked(documents.word()), name: content})


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_known_by_its_content_and_read_in_three_languages(name: str) -> None:
    parsed = read(MAKERS[name](), LIMITS)

    assert parsed.mime == MIMES[name]
    for sentence in SENTENCES:
        assert sentence in parsed.text
    assert unicodedata.is_normalized("NFC", parsed.text)
    assert "\r" not in parsed.text


def test_a_pdf_knows_its_pages_and_bookmarks() -> None:
    parsed = read(documents.pdf(12), LIMITS)

    assert parsed.title == TITLE
    assert [page.number for page in parsed.pages] == list(range(1, 13))
    for page in parsed.pages:
        assert parsed.text[page.start : page.end].startswith(f"Page {page.number} of")
    assert "".join(parsed.text[page.start : page.end] for page in parsed.pages) == parsed.text
    assert titles(parsed) == [(1, f"Page {number} of the report") for number in range(1, 13)]


def test_a_word_document_keeps_headings_and_tables() -> None:
    parsed = read(documents.word(), LIMITS)

    assert parsed.title == TITLE
    assert titles(parsed) == [(1, "Opening 開門"), (2, "Levels 수위")]
    for row in CELLS:
        assert " | ".join(row) in parsed.text.splitlines()


def test_slides_are_pages_with_notes() -> None:
    presentation = pptx.Presentation(io.BytesIO(documents.slides()))
    presentation.slides[1].notes_slide.notes_text_frame.text = "発表者ノート"
    buffer = io.BytesIO()
    presentation.save(buffer)

    parsed = read(buffer.getvalue(), LIMITS)

    assert [page.number for page in parsed.pages] == [1, 2, 3]
    assert titles(parsed) == [(1, f"Slide {number} 水門") for number in (1, 2, 3)]
    second = parsed.pages[1]
    assert "発表者ノート" in parsed.text[second.start : second.end]


def test_a_workbook_has_a_heading_per_sheet_and_shows_dates_as_dates() -> None:
    book = openpyxl.load_workbook(io.BytesIO(documents.sheet()))
    moment = datetime(2026, 11, 15, 9, 30, tzinfo=UTC).replace(tzinfo=None)
    book.active["E2"], book.active["F2"] = moment.date(), moment
    book.active["A5"], book.active["XFD5"] = True, 0.5
    buffer = io.BytesIO()
    book.save(buffer)

    parsed = read(buffer.getvalue(), LIMITS)

    assert titles(parsed) == [(1, "水位"), (1, "문장")]
    lines = parsed.text.splitlines()
    assert "Name | 水位 | 수위" in lines
    assert "North | 12.5 | 13.5 |  | 2026-11-15 | 2026-11-15 09:30:00" in lines
    assert any(line.startswith("TRUE | ") and line.endswith(" | 0.5") for line in lines)


def test_numbers_of_a_workbook_are_read_as_it_shows_them() -> None:
    book = openpyxl.Workbook()
    book.active.append([89.9, 0.1 + 0.2, 1e-7, -2.5, 42, 4111111111111111])
    book.active.append([0.25, 0.07, 1, 0.0825, -0.5, 0.5])
    formats = ["0%", "0.00%", "0%;[Red]-0%", "#,##0.0 %", "0%", '0.0" % of all"']
    for cell, shown in zip(book.active[2], formats, strict=False):
        cell.number_format = shown
    buffer = io.BytesIO()
    book.save(buffer)
    numbers, percents = read(buffer.getvalue(), LIMITS).text.splitlines()[-2:]
    assert numbers == "89.9 | 0.3 | 1e-07 | -2.5 | 42 | 4111111111111111"
    assert percents == "25% | 7% | 100% | 8.25% | -50% | 0.5"


def test_a_web_page_keeps_what_is_seen() -> None:
    page = (
        "<html><head><title>T &amp; t</title><script>var a='<p>x</p>'</script></head><body>"
        "<h1>One <b>bold</b></h1><p>R&amp;D &lt;jane@example.com&gt;<br>next&nbsp;line"
        "<ul><li>first<li>second</ul><pre>a  b\n  c</pre>"
        "<table><tr><th>x<td>y<tr><td><p>1</p><p>2</p></td><td></td></table>tail<!-- not --></body>"
    )

    parsed = read(page.encode(), LIMITS)

    assert parsed.title == "T & t"
    assert parsed.text == (
        "One bold\n\nR&D <jane@example.com>\nnext line\n\n- first\n\n- second\n\n"
        "a  b\n  c\n\nx | y\n1 2 | \n\ntail"
    )


def test_markdown_keeps_its_text_and_knows_headings_outside_code() -> None:
    text = "# One #\n\n```\n# not one\n```\n\n## Two\ntext\n### \n"

    parsed = read(text.encode(), LIMITS)

    assert parsed.text == text
    assert titles(parsed) == [(1, "One"), (2, "Two")]


def test_mail_shows_headers_and_the_best_body() -> None:
    parsed = read(documents.mail(), LIMITS)

    assert parsed.title == TITLE
    assert parsed.text.startswith(f"Subject: {TITLE}\nFrom: Jane <jane@example.com>\n")
    assert parsed.text.count(SENTENCES[1]) == 1
    assert parsed.metadata["attachments"] == "1"


def test_mail_of_the_old_kind_is_read() -> None:
    head = (
        "From: a@example.jp\r\nTo: b@example.jp\r\nSubject: =?ISO-2022-JP?B?GyRCP2VMZxsoQg==?=\r\n"
    )
    kind = "Content-Type: text/{}; charset={}\r\nContent-Transfer-Encoding: {}\r\n\r\n"
    japanese = (head + kind.format("plain", "iso-2022-jp", "7bit")).encode() + (
        "水門は夜明けに開く。".encode("iso-2022-jp")
    )
    korean = (head + kind.format("html", "euc-kr", "8bit")).encode() + (
        "<p>수문은 새벽에 열린다.</p>".encode("euc-kr")
    )

    assert "水門は夜明けに開く。" in read(japanese, LIMITS).text
    assert read(japanese, LIMITS).title == "水門"
    assert read(korean, LIMITS).text.endswith("\n\n수문은 새벽에 열린다.")


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    parsed = read(documents.book(), LIMITS)

    assert parsed.title == TITLE
    assert titles(parsed) == [(1, f"Chapter {number} 章") for number in (1, 2, 3)]


@pytest.mark.parametrize("name", FORMATS)
def test_signs_that_markup_uses_are_not_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "R&D <a_b@example.com> 3 < 4 *x* \\ #1 | ~"
    shown = text
    if name in ("html", "epub"):
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    monkeypatch.setattr(documents, "ENGLISH", text)
    monkeypatch.setattr(documents, "SENTENCES", (text, *SENTENCES[1:]))

    assert shown in read(MAKERS[name](), LIMITS).text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", "水門は夜明けに開く。"),
        ("utf-16", "水門 sluice 수문"),
        ("utf-32", "水門 sluice 수문"),
        ("utf-16-le", "The sluice opens at dawn, and nobody is there."),
        ("utf-16-be", "The sluice opens at dawn, and nobody is there."),
        ("cp932", "水門は夜明けに開く。カタカナと漢字、①②③。"),
        ("euc-jp", "水門は夜明けに開く。カタカナと漢字。"),
        ("iso-2022-jp", "水門は夜明けに開く。カタカナと漢字。"),
        ("cp949", "수문은 새벽에 열린다. 아무도 없다. 똠방각하"),
        ("gb18030", "水闸在黎明时开启，没有人在那里。"),
        ("cp1252", "Die Schleuse öffnet früh, “très tôt”."),
    ],
)
def test_text_is_read_in_the_encodings_people_use(encoding: str, text: str) -> None:
    assert read(text.encode(encoding), LIMITS).text == text


def test_a_page_that_names_its_encoding_is_believed() -> None:
    page = "<html><meta charset=Shift_JIS><p>水</p>".encode("cp932")

    assert read(page, LIMITS).text == "水"


def test_text_is_clean() -> None:
    assert clean("e\u0301\x00\ud800\r\na\rb\x0bc\x07") == "\u00e9\ufffd?\na\nb\nc"


@given(st.text())
def test_clean_text_is_storable_and_normal(text: str) -> None:
    result = clean(text)

    assert result.encode("utf-8", "strict").decode() == result
    assert "\x00" not in result
    assert unicodedata.is_normalized("NFC", result)


@given(st.lists(st.tuples(st.sampled_from(["page", "heading", "block", "row"]), st.text())))
def test_offsets_of_a_draft_are_true(steps: list[tuple[str, str]]) -> None:
    draft = Draft(LIMITS)
    draft.block("first")
    pages = 0
    for step, text in steps:
        match step:
            case "page":
                draft.page()
                pages += 1
            case "heading":
                draft.heading(1, text)
            case "block":
                draft.block(text)
            case _:
                draft.row([text, text])
    parsed = draft.finish("text/plain")
    assert unicodedata.is_normalized("NFC", parsed.text)
    assert len(parsed.pages) == pages
    if pages:
        assert parsed.pages[-1].end == len(parsed.text)
    for before, after in zip(parsed.pages, parsed.pages[1:], strict=False):
        assert before.end == after.start
    for heading in parsed.headings:
        assert parsed.text.startswith(heading.title, heading.start)


def test_what_is_protected_by_a_password_is_said_to_be() -> None:
    assert reason(documents.pdf(password="secret")) == "encrypted"
    assert reason(documents.word(password="secret")) == "encrypted"
    locked = bytearray(documents.word())
    at = locked.index(b"PK\x01\x02")
    locked[at + 8] |= 1
    assert reason(bytes(locked)) == "encrypted"


def test_a_book_with_locked_chapters_is_encrypted_and_one_with_locked_fonts_is_not() -> None:
    lock = '<encryption><EncryptedData><CipherReference URI="{}"/></EncryptedData></encryption>'
    for locked, expected in (("OEBPS/c2.xhtml", "encrypted"), ("OEBPS/font.otf", None)):
        data = zipped(
            {**unpacked(documents.book()), "META-INF/encryption.xml": lock.format(locked)}
        )
        if expected:
            assert reason(data) == expected
        else:
            assert SENTENCES[1] in read(data, LIMITS).text


def test_packing_that_documents_do_not_use_is_refused() -> None:
    assert reason(zipped(unpacked(documents.word()), zipfile.ZIP_BZIP2)) == "corrupt"


def test_what_has_no_text_is_empty() -> None:
    assert reason(b"") == "empty"
    assert reason(b" \r\n\t ") == "empty"
    assert reason(b"<html><body><img src=x></body></html>") == "empty"
    buffer = io.BytesIO()
    docx.Document().save(buffer)
    assert reason(buffer.getvalue()) == "empty"


def test_what_is_no_document_is_unknown() -> None:
    rng = random.Random(3)
    assert reason(Path(sys.executable).read_bytes()[:100_000]) == "unknown"
    assert reason(rng.randbytes(5_000)) == "unknown"
    assert reason(zipped({"a.txt": "text"})) == "unknown"
    assert reason(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000)) == "unknown"
    assert reason(rb"{\rtf1\ansi text}") == "unknown"
    assert reason(b"SQLite format 3\x00" + bytes(4_000)) == "unknown"


@pytest.mark.parametrize("name", ["pdf", "docx", "pptx", "xlsx", "epub"])
def test_half_a_document_is_corrupt(name: str) -> None:
    data = MAKERS[name]()

    assert reason(data[: len(data) // 2]) == "corrupt"


def test_limits_are_named_when_passed() -> None:
    assert reason(b"x" * 1_001, ParseLimits(input_bytes=1_000)) == "oversized"
    assert reason(b"x" * 1_001, ParseLimits(characters=1_000)) == "oversized"
    assert reason(documents.pdf(4), ParseLimits(pages=3)) == "oversized"
    assert read(documents.pdf(3), ParseLimits(pages=3)).pages
    with pytest.raises(ConfigError, match="seconds"):
        ParseLimits(seconds=0)


def test_bombs_are_not_unpacked() -> None:
    assert reason(packed_with("word/document.xml", bytes(50_000_000))) == "bomb"
    assert reason(documents.word(), ParseLimits(entries=3)) == "bomb"
    assert reason(documents.word(), ParseLimits(expanded_bytes=1_000)) == "bomb"
    entities = "".join(f'<!ENTITY e{n} "&e{n - 1};&e{n - 1};">' for n in range(1, 30))
    xml = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e0 "x">{entities}]><d>&e29;</d>'
    assert reason(packed_with("word/document.xml", xml.encode())) == "bomb"
    deep = b"<d>" * 100_000 + b"</d>" * 100_000
    assert reason(packed_with("word/document.xml", deep), ParseLimits(expansion_ratio=9_999)) == (
        "bomb"
    )


def test_a_file_that_refers_outside_itself_reads_nothing_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    xml = f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}">]><d>&x;</d>'

    assert reason(packed_with("word/document.xml", xml.encode())) == "bomb"


def test_depth_of_html_costs_nothing() -> None:
    parsed = read(b"<html>" + b"<div>" * 200_000 + b"deep" + b"</div>" * 200_000, LIMITS)

    assert parsed.text == "deep"


UNCLOSED = ["<", "<!", "<!--", "<![CDATA[", "&", "&#", "<a b='", '<a b="', "</", "</a", "<a ", "<?"]
UNCLOSED += [
    "<script>",
    "<title>",
    "<td>",
    "<table>",
    "<svg>",
    "<li>",
    "<a/",
    "<pre>",
    "<h1>",
    "<br/",
]


@pytest.mark.parametrize("unit", UNCLOSED)
def test_hostile_html_takes_time_in_proportion(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a megabyte; the standard library needed a minute for a quarter of some of these."""
    monkeypatch.setitem(sys.modules, "trafilatura", None)  # bounded by a clock instead
    page = "<html><p>seen</p>" + unit * (500_000 // len(unit))
    started = time.process_time()

    parsed = read(page.encode(), LIMITS)

    assert time.process_time() - started < 10
    assert parsed.text.startswith("seen")


def test_html_with_its_quotes_and_comments_unclosed_loses_little() -> None:
    page = '<html><p>one</p><a title=\'it>two</a><!-- open <p>three</p><p a="x>y">four</p>'

    assert read(page.encode(), LIMITS).text == "one\n\ntwothree\n\nfour"
