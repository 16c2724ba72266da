"""PDF, by PDFium: text page by page, headings from the bookmarks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from penstock.documents.parse.draft import Draft, clean, one_line
from penstock.documents.parse.pdf_lines import Hyphens, page_text
from penstock.errors import ConfigError, ParserError

_MOST_BOOKMARKS = 5_000
_TITLE_MOST = 500
_SPACE = re.compile(r"\s+")
_NO_LETTER = re.compile(r"[\W_]+")
_FEW = 25
"""Maximum letters on a scanned page: its number, or the name of the scanner."""
_LEGIBLE = 0.25
"""Minimum share of letters and digits in a text; glyphs without a known meaning have less."""
_MOST_OBJECTS = 10_000
"""Maximum objects of a page to search for an image."""


def read_pdf(data: bytes, draft: Draft) -> None:
    with open_pdf(data) as document:
        _read(document, draft)


@contextmanager
def open_pdf(data: bytes) -> Iterator[Any]:
    try:
        import pypdfium2  # heavy, and only PDF needs it
    except ImportError as error:
        raise ConfigError("PDF needs the extra: pip install 'penstock[ingest]'") from error
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise ParserError("it is password-protected", "encrypted") from error
        raise ParserError("not a whole PDF", "corrupt") from error
    try:
        yield document
    except pypdfium2.PdfiumError as error:
        raise ParserError("a page of the PDF is damaged", "corrupt") from error
    finally:
        document.close()


def _read(document: Any, draft: Draft) -> None:
    said = document.get_metadata_dict(skip_empty=True)
    draft.title = said.get("Title")
    draft.note("author", said.get("Author"))
    draft.note("subject", said.get("Subject"))
    hyphens = Hyphens()
    for index in range(len(document)):
        draft.page()
        page = document[index]
        layer = page.get_textpage()
        text = page_text(layer, hyphens)
        layer.close()
        if not (_is_scan(page, text) and draft.scan()):
            draft.block(text)
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


def _is_scan(page: Any, text: str) -> bool:
    """Whether the page has to be read by OCR."""
    signs = len(_SPACE.sub("", text))
    letters = len(_NO_LETTER.sub("", text))
    if letters >= _FEW:
        return letters < _LEGIBLE * signs
    if not letters:
        return any(True for _ in page.get_objects())
    return _covered(page)


def _covered(page: Any) -> bool:
    """Whether an image covers most of the page."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    width, height = page.get_size()
    for image in islice(page.get_objects(), _MOST_OBJECTS):
        if image.type != FPDF_PAGEOBJ_IMAGE:
            continue
        left, bottom, right, top = image.get_bounds()
        if (right - left) * (top - bottom) > width * height / 2:
            return True
    return False
