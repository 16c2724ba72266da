"""Detects a document's type by its content: names and declared types lie."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import Counter
from enum import StrEnum

from penstock.documents.parse import docx_file, epub_file, pptx_file, xlsx_file
from penstock.documents.parse.archive import Archive
from penstock.errors import ParserError


class Mime(StrEnum):
    PDF = "application/pdf"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    EPUB = "application/epub+zip"
    HTML = "text/html"
    MAIL = "message/rfc822"
    MARKDOWN = "text/markdown"
    CSV = "text/csv"
    TEXT = "text/plain"


_MAIN_PARTS = {
    docx_file.MAIN: Mime.DOCX,
    pptx_file.MAIN: Mime.PPTX,
    xlsx_file.MAIN: Mime.XLSX,
    epub_file.MAIN: Mime.EPUB,
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PICTURES = {
    b"\x89PNG\r\n\x1a\n": Mime.PNG,
    b"\xff\xd8\xff": Mime.JPEG,
    b"II*\0": Mime.TIFF,
    b"MM\0*": Mime.TIFF,
}
_PDF_REACH = 1024
"""PDF readers accept this many bytes of garbage before the signature."""

_SAMPLE = 20_000
_ODD_MOST = 0.05
_NOT_READ = ("{\\rtf", "%!PS")
"""Formats that consist of text but are not documents."""
_HTML = re.compile(
    r"(?is)\s*(?:<\?xml[^>]{0,200}>\s*|<!--.{0,2000}?-->\s*){0,4}"
    r"<(?:!doctype\s+html|(?:html|head|body|title|meta|div|h[1-6]|table|p)\b)"
)
_HEADER = re.compile(r"(?:From |[!-9;-~]+:|[ \t])")
_MAIL_HEADERS = {"from", "to", "subject", "date", "message-id", "received", "return-path"}
_SENT = {"from", "received", "return-path", "message-id"}
_MARKDOWN = re.compile(
    r"(?m)^ {0,3}(?:#{1,6} +\S|```|~~~)|^\|?(?: *:?-{3,}:? *\|)+|\[[^\[\]\n]+\]\([^()\n]+[()]"
)
_SAME_WIDTH = 0.95


def is_pdf(data: bytes) -> bool:
    return b"%PDF-" in data[:_PDF_REACH]


def is_zip(data: bytes) -> bool:
    return data.startswith(_ZIP)


def picture_mime(data: bytes) -> Mime | None:
    return next((mime for mark, mime in _PICTURES.items() if data.startswith(mark)), None)


def refuse_old_office(data: bytes) -> None:
    """Reject the container of old office files, and of new ones with a password."""
    if data.startswith(_OLE):
        if _ENCRYPTED_PACKAGE in data:
            raise ParserError("it is password-protected", "encrypted")
        raise ParserError(
            "office files from before 2007 are not supported: save as DOCX", "unknown"
        )


def packed_mime(archive: Archive) -> Mime:
    for part, mime in _MAIN_PARTS.items():
        if part in archive:
            return mime
    raise ParserError("unsupported file type (zip archive)", "unknown")


def text_mime(text: str) -> Mime:
    """Detect the type of decoded text; raises if it is not text."""
    sample = text[:_SAMPLE]
    odd = {sign for sign in set(sample) if _is_odd(sign)}
    if (odd and sum(map(odd.__contains__, sample)) > _ODD_MOST * len(sample)) or sample.startswith(
        _NOT_READ
    ):
        raise ParserError("unsupported file type", "unknown")
    if _HTML.match(sample):
        return Mime.HTML
    lines = sample.split("\n")
    if len(sample) < len(text):
        lines.pop()
    if _is_mail(lines):
        return Mime.MAIL
    if _is_csv(lines):
        return Mime.CSV
    return Mime.MARKDOWN if _MARKDOWN.search(sample) else Mime.TEXT


def _is_odd(sign: str) -> bool:
    if " " <= sign <= "~" or sign in "\t\n\r\f\v":
        return False
    return sign == "\ufffd" or unicodedata.category(sign) in ("Cc", "Cn", "Co", "Cs")


def _is_mail(lines: list[str]) -> bool:
    names = set()
    for line in lines:
        line = line.rstrip("\r")
        if not line:
            break
        if not _HEADER.match(line):
            return False
        names.add(line.partition(":")[0].lower())
    return len(names & _MAIL_HEADERS) >= 2 and bool(names & _SENT)


def _is_csv(lines: list[str]) -> bool:
    filled = [line for line in lines if line.strip()]
    for delimiter in ",\t;":
        try:
            widths = Counter(len(row) for row in csv.reader(filled, delimiter=delimiter))
        except csv.Error:
            continue
        if not widths:
            return False
        width, rows = widths.most_common(1)[0]
        if width > 1 and rows > 1 and rows >= _SAME_WIDTH * widths.total():
            return True
    return False
