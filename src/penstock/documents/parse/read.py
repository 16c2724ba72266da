"""Chooses the reader for a document's bytes. Runs in the child."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.documents.parse.archive import Archive
from penstock.documents.parse.docx_file import read_docx
from penstock.documents.parse.draft import Draft
from penstock.documents.parse.epub_file import read_epub
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.mail_file import read_mail
from penstock.documents.parse.pdf_file import read_pdf
from penstock.documents.parse.picture import count_pictures
from penstock.documents.parse.pptx_file import read_pptx
from penstock.documents.parse.sniff import (
    Mime,
    is_pdf,
    is_zip,
    packed_mime,
    picture_mime,
    refuse_old_office,
    text_mime,
)
from penstock.documents.parse.text_file import decode, read_csv, read_markdown, read_text
from penstock.documents.parse.web_page import read_page
from penstock.documents.parse.xlsx_file import read_xlsx
from penstock.documents.parsed import Parsed
from penstock.errors import ParserError


def read(
    data: bytes,
    limits: ParseLimits,
    scanned: Mapping[int, str] | None = None,
    web: str | None = None,
) -> Parsed:
    """Read a document. `scanned` is the text of scanned pages, by number; `web` the charset
    declared by a web server, None if it does not come from one. Raises ParserError; ConfigError if
    a library is not installed."""
    if len(data) > limits.input_bytes:
        raise ParserError(f"larger than {limits.input_bytes} bytes", "oversized")
    if not data:
        raise ParserError("the file is empty", "empty")
    refuse_old_office(data)
    draft = Draft(limits, scanned)
    if is_pdf(data):
        mime = Mime.PDF
        read_pdf(data, draft)
    elif is_zip(data):
        mime = _read_packed(Archive(data, limits), draft)
    elif found := picture_mime(data):
        mime = found
        for _ in range(count_pictures(data, limits) if limits.scans else 1):
            draft.page()
            draft.scan()
    else:
        text = decode(data, web)
        mime = text_mime(text)
        if mime is Mime.HTML:
            draft = read_page(text, limits, of_file=web is None)
        else:
            _read_text(data, text, mime, draft)
    return draft.finish(mime)


def _read_packed(archive: Archive, draft: Draft) -> Mime:
    mime = packed_mime(archive)
    match mime:
        case Mime.DOCX:
            read_docx(archive, draft)
        case Mime.PPTX:
            read_pptx(archive, draft)
        case Mime.XLSX:
            read_xlsx(archive, draft)
        case _:
            read_epub(archive, draft)
    return mime


def _read_text(data: bytes, text: str, mime: Mime, draft: Draft) -> None:
    match mime:
        case Mime.MAIL:
            read_mail(data, draft)
        case Mime.MARKDOWN:
            read_markdown(text, draft)
        case Mime.CSV:
            read_csv(text, draft)
        case _:
            read_text(text, draft)
