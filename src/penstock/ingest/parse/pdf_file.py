"""PDF, by PDFium: text page by page, headings from the bookmarks."""

from __future__ import annotations

import re
from typing import Any

from penstock.ingest.parse.draft import Draft, clean, one_line
from penstock.model.errors import ConfigError, ParserError

# PDFium's sign for a hyphen that only breaks the line.
_SOFT_BREAK = re.compile("[\x02\ufffe](?:\r\n?|\n)?")
_MOST_BOOKMARKS = 5_000
_TITLE_MOST = 500


def read_pdf(data: bytes, draft: Draft) -> None:
    try:
        import pypdfium2  # heavy, and only PDF needs it
    except ImportError as error:
        raise ConfigError("PDF needs the extra: pip install 'penstock[ingest]'") from error
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise ParserError("it is protected by a password", "encrypted") from error
        raise ParserError("not a whole PDF", "corrupt") from error
    try:
        _read(document, draft)
    except pypdfium2.PdfiumError as error:
        raise ParserError("a page of the PDF is damaged", "corrupt") from error
    finally:
        document.close()


def _read(document: Any, draft: Draft) -> None:
    said = document.get_metadata_dict(skip_empty=True)
    draft.title = said.get("Title")
    draft.note("author", said.get("Author"))
    draft.note("subject", said.get("Subject"))
    for index in range(len(document)):
        draft.page()
        page = document[index]
        text = page.get_textpage()
        draft.block(_SOFT_BREAK.sub("", text.get_text_range()))
        text.close()
        page.close()
    if not len(document):
        raise ParserError("the PDF has no pages", "empty")
    for count, bookmark in enumerate(document.get_toc(max_depth=6)):
        if count >= _MOST_BOOKMARKS:
            break
        target = bookmark.get_dest()
        page_index = target.get_index() if target else None
        title = one_line(clean(bookmark.get_title()))
        if title and page_index is not None and page_index < len(document):
            draft.mark(bookmark.level + 1, title[:_TITLE_MOST], page_index)
