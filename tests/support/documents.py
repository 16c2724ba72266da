"""Documents of every format, made on the spot. Each holds the same few facts in three languages."""

import io
import random
import zipfile
from collections.abc import Callable, Sequence
from email.message import EmailMessage

import docx
import msoffcrypto.format.ooxml
import openpyxl
import pptx
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

ENGLISH = "The sluice opens at dawn."
JAPANESE = "水門は夜明けに開く。"
KOREAN = "수문은 새벽에 열린다."
SENTENCES = (ENGLISH, JAPANESE, KOREAN)
TITLE = "Sluice 水門 수문"
CELLS = (("Name", "水位", "수위"), ("North", "12.5", "13.5"), ("South", "7.25", "8.75"))


def pdf(pages: int = 3, password: str | None = None, lines: int = 0) -> bytes:
    """Page n has a bookmark, says "Page n" and the sentences, each in a font of its script, and
    has more lines of small print."""
    for font in ("HeiseiMin-W3", "HYSMyeongJo-Medium"):
        pdfmetrics.registerFont(UnicodeCIDFont(font))
    buffer = io.BytesIO()
    encrypt = StandardEncryption(password, strength=128) if password else None
    canvas = Canvas(buffer, encrypt=encrypt, invariant=1)
    canvas.setTitle(TITLE)
    for number in range(1, pages + 1):
        canvas.setFont("Helvetica", 12)
        heading = f"Page {number} of the report"
        canvas.bookmarkPage(heading)
        canvas.addOutlineEntry(heading, heading)
        canvas.drawString(72, 760, heading)
        canvas.drawString(72, 740, ENGLISH)
        canvas.setFont("HeiseiMin-W3", 12)
        canvas.drawString(72, 720, JAPANESE)
        canvas.setFont("HYSMyeongJo-Medium", 12)
        canvas.drawString(72, 700, KOREAN)
        canvas.setFont("Helvetica", 8)
        for line in range(lines):
            canvas.drawString(72, 680 - 10 * line, f"{number}.{line} {ENGLISH * 3}")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def pdf_of(lines: Sequence[str]) -> bytes:
    """One page, with each line as long as it is."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for number, line in enumerate(lines):
        canvas.drawString(72, 760 - 14 * number, line)
    canvas.save()
    return buffer.getvalue()


def word(password: str | None = None) -> bytes:
    document = docx.Document()
    document.core_properties.title = TITLE
    document.add_heading("Opening 開門", level=1)
    for sentence in SENTENCES:
        document.add_paragraph(sentence)
    document.add_heading("Levels 수위", level=2)
    table = document.add_table(rows=len(CELLS), cols=3)
    for row, values in zip(table.rows, CELLS, strict=True):
        for cell, value in zip(row.cells, values, strict=True):
            cell.text = value
    buffer = io.BytesIO()
    document.save(buffer)
    return _encrypted(buffer, password) if password else buffer.getvalue()


def _encrypted(plain: io.BytesIO, password: str) -> bytes:
    buffer = io.BytesIO()
    plain.seek(0)
    msoffcrypto.format.ooxml.OOXMLFile(plain).encrypt(password, buffer)
    return buffer.getvalue()


def slides() -> bytes:
    presentation = pptx.Presentation()
    for number, sentence in enumerate(SENTENCES, 1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number} 水門"
        slide.placeholders[1].text = sentence
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def sheet() -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "水位"
    for values in CELLS:
        book.active.append(values)
    second = book.create_sheet("문장")
    for sentence in SENTENCES:
        second.append([sentence])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def html() -> bytes:
    rows = "".join(
        "<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>" for values in CELLS
    )
    body = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES)
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{TITLE}</title>"
        "<script>var hidden = 1;</script><style>p { color: red }</style></head><body>"
        f"<h1>Opening 開門</h1>{body}<h2>Levels 수위</h2><table>{rows}</table></body></html>"
    ).encode()


def markdown() -> bytes:
    rows = "\n".join("| " + " | ".join(values) + " |" for values in CELLS[1:])
    head = "| " + " | ".join(CELLS[0]) + " |\n|---|---|---|"
    text = "\n\n".join(SENTENCES)
    return f"# Opening 開門\n\n{text}\n\n## Levels 수위\n\n{head}\n{rows}\n".encode()


def csv(rows: int = 1) -> bytes:
    lines = [",".join(values) for values in CELLS]
    lines += [f'"{ENGLISH}",{JAPANESE},"{KOREAN}"'] * rows
    return ("\r\n".join(lines) + "\r\n").encode()


def plain(encoding: str = "utf-8") -> bytes:
    return "\n\n".join(SENTENCES).encode(encoding)


def mail() -> bytes:
    message = EmailMessage()
    message["From"] = "Jane <jane@example.com>"
    message["To"] = "kim@example.kr"
    message["Subject"] = TITLE
    message["Date"] = "Sun, 15 Nov 2026 09:30:00 +0900"
    message.set_content("\n\n".join(SENTENCES))
    message.add_alternative(f"<p>{'</p><p>'.join(SENTENCES)}</p>", subtype="html")
    message.add_attachment(b"\x00\x01", maintype="application", subtype="x", filename="a.bin")
    return bytes(message)


def book() -> bytes:
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"'
        ' media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    items = range(1, len(SENTENCES) + 1)
    manifest = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in items
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in items)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{TITLE}</dc:title>'
        '<dc:identifier id="id">x</dc:identifier><dc:language>ja</dc:language></metadata>'
        f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>"
    )
    files = {"META-INF/container.xml": container, "OEBPS/book.opf": package}
    for number, sentence in zip(items, SENTENCES, strict=True):
        files[f"OEBPS/c{number}.xhtml"] = (
            '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>'
            f"<h1>Chapter {number} 章</h1><p>{sentence}</p></body></html>"
        )
    return zipped({"mimetype": "application/epub+zip", **files})


def zipped(files: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def damaged(data: bytes, rng: random.Random, count: int) -> list[bytes]:
    """Truncated, with bytes changed, cut out or doubled."""
    made = [data[: rng.randrange(1, len(data))] for _ in range(count // 2)]
    for _ in range(count - len(made)):
        broken = bytearray(data)
        for _ in range(rng.choice((1, 8, 64))):
            at = rng.randrange(len(broken) or 1)
            match rng.randrange(3):
                case 0:
                    broken[at : at + 1] = rng.randbytes(1)
                case 1:
                    del broken[at : at + rng.randrange(1, 50)]
                case _:
                    broken[at:at] = broken[at : at + rng.randrange(1, 50)]
        made.append(bytes(broken))
    return made


MAKERS: dict[str, Callable[[], bytes]] = {
    "pdf": pdf,
    "docx": word,
    "pptx": slides,
    "xlsx": sheet,
    "html": html,
    "md": markdown,
    "csv": csv,
    "txt": plain,
    "eml": mail,
    "epub": book,
}
MIMES = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "md": "text/markdown",
    "csv": "text/csv",
    "txt": "text/plain",
    "eml": "message/rfc822",
    "epub": "application/epub+zip",
}
