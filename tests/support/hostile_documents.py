"""Documents that are made to cost more than they should: something is in them `n` times."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.documents import pdf_of, zipped

MAIL = "From: a@b.example\nTo: {to}\nSubject: {subject}\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
SHEET = '<sheet name="a" r:id="r1"/>'
CELL = '<c t="s"><v>0</v></c>'


def mail(more: str = "\nbody", to: str = "b@c.example", subject: str = "s") -> bytes:
    return (MAIL.format(to=to, subject=subject) + more).encode()


def parts(content_type: str, n: int) -> bytes:
    return mail(
        f"Content-Type: {content_type}; boundary=x\n\n" + "--x\nContent-Type: image/png\n\na\n" * n
    )


def nested(levels: int) -> bytes:
    head = "Content-Type: multipart/mixed; boundary=x{}\n\n"
    inner = (f"--x{level}\n{head.format(level + 1)}" for level in range(levels))
    return mail(head.format(0) + "".join(inner) + "a\n")


def word(body: str, **files: str) -> bytes:
    return zipped({"word/document.xml": f"<w>{body}<p><t>a</t></p></w>", **files})


def workbook(
    sheets: str = SHEET, cells: str = CELL, strings: str = "<si><t>a</t></si>", styles: str = ""
) -> bytes:
    return zipped(
        {
            "xl/workbook.xml": f'<w xmlns:r="x/relationships">{sheets}</w>',
            "xl/_rels/workbook.xml.rels": '<R><Relationship Id="r1" Target="s.xml"/></R>',
            "xl/sharedStrings.xml": f"<sst>{strings}</sst>",
            "xl/styles.xml": f"<s>{styles}</s>",
            "xl/s.xml": f"<s><row>{cells}</row></s>",
        }
    )


def slides(count: int = 1, text: str = "a", notes: int = 0, note: str = "") -> bytes:
    shown = "".join(f'<sldId r:id="r{number}"/>' for number in range(count))
    named = (f'<Relationship Id="r{number}" Target="s.xml"/>' for number in range(count))
    noted = (
        f'<Relationship Id="n{number}" Type="x/notesSlide" Target="n.xml"/>'
        for number in range(notes)
    )
    return zipped(
        {
            "ppt/presentation.xml": f'<p xmlns:r="x/relationships">{shown}</p>',
            "ppt/_rels/presentation.xml.rels": f"<R>{''.join(named)}</R>",
            "ppt/s.xml": f"<s><sp><txBody><p><t>{text}</t></p></txBody></sp></s>",
            "ppt/_rels/s.xml.rels": f"<R>{''.join(noted)}</R>",
            "ppt/n.xml": f"<s>{note}</s>",
        }
    )


def book(items: int, chapter: str = "a") -> bytes:
    named = (f'<item id="i{number}" href="c.xhtml"/>' for number in range(items))
    order = (f'<itemref idref="i{number}"/>' for number in range(items))
    return zipped(
        {
            "META-INF/container.xml": '<c><rootfile full-path="o.opf"/></c>',
            "o.opf": f"<p>{''.join(named)}{''.join(order)}</p>",
            "c.xhtml": f"<html><p>{chapter}</p></html>",
        }
    )


HOSTILE: Mapping[str, tuple[Callable[[int], bytes], int]] = {
    "markdown: blanks in a heading": (lambda n: b"# a" + b" " * n + b"b", 2_000),
    "markdown: links never closed": (lambda n: b"[a](" * n, 500),
    "text: marks out of order": (lambda n: ("a" + "\u0301" * n + "\u0316" * n).encode(), 2_000),
    "text: signs that come apart as marks": (lambda n: ("a" + "\u0f73" * n).encode(), 2_000),
    "csv: a quote never closed": (lambda n: b"a,b\n" + b'"' * n, 20_000),
    "html: quotes in a tag": (lambda n: b"<html><a " + b'"' * n, 32_000),
    "html: quotes in each other": (lambda n: b"<html>" + b"<a x=\"'><b y='\">" * n, 2_000),
    "html: ends of what is not open": (
        lambda n: b"<html>" + b"<svg>" * n + b"</style>" * n,
        1_000,
    ),
    "html: styles in pictures": (
        lambda n: b"<html>" + b"<svg>" * n + b"<style></style>" * n,
        1_000,
    ),
    "html: comments never closed": (lambda n: b"<html>" + b"<!--" * n, 20_000),
    "html: scripts never closed": (lambda n: b"<html>" + b"<script></scrip" * n, 5_000),
    "html: entities": (lambda n: b"<html>" + b"&amp" * n, 5_000),
    "html: cells and paragraphs": (lambda n: b"<html><tr>" + b"<td><p>" * n + b"a", 1_000),
    "pdf: lines that end in a hyphen": (lambda n: pdf_of(["a b-"] * n), 200),
    "pdf: lines that go on": (lambda n: pdf_of(["The a b", "c d", "- e"] * n), 100),
    "pdf: parts of a line": (lambda n: pdf_of([" ".join("ab" * n)]), 1_000),
    "mail: quotes among those it is to": (lambda n: mail(to='"' * n), 1_000),
    "mail: words of a subject": (lambda n: mail(subject="=?utf-8?q?a?= " * n), 500),
    "mail: lines of a subject": (lambda n: mail(subject="a\n " * n), 1_000),
    "mail: parameters of a type": (
        lambda n: mail("Content-Type: text/plain" + "; a=b" * n + "\n\nbody"),
        60,
    ),
    "mail: headers": (lambda n: mail("X-A: a\n" * n + "\nbody"), 2_000),
    "mail: parts": (lambda n: parts("multipart/mixed", n), 25),
    "docx: paragraphs of a cell": (
        lambda n: word("<tbl><tr><tc>" + "<p/>" * n + "</tc></tr></tbl>"),
        4_000,
    ),
    "docx: pieces of a paragraph": (lambda n: word("<p><t>" + "<b/>a" * n + "</t></p>"), 4_000),
    "docx: pieces of its title": (
        lambda n: word(
            "", **{"docProps/core.xml": "<c><title>" + "a<![CDATA[b]]>" * n + "</title></c>"}
        ),
        2_000,
    ),
    "xlsx: sheets of one part": (
        lambda n: workbook(sheets=SHEET * n, cells=CELL * n),
        200,
    ),
    "xlsx: cells of one long blank text": (
        lambda n: workbook(cells=CELL * n, strings=f"<si><t>{' ' * 40 * n}</t></si>"),
        500,
    ),
    "xlsx: the name of a column": (lambda n: workbook(cells=f'<c r="{"Z" * n}"/>' + CELL), 4_000),
    "xlsx: a format": (
        lambda n: workbook(styles=f'<numFmt numFmtId="1" formatCode="{"[" * n}"/>'),
        4_000,
    ),
    "pptx: slides of one part": (lambda n: slides(n, "<b/>" * n), 200),
    "pptx: notes of one part": (lambda n: slides(notes=n, note="<b/>" * n), 200),
    "pptx: pieces of a line": (lambda n: slides(text="abcdefgh<b/>" * n), 4_000),
    "epub: items of one chapter": (lambda n: book(n, "<b>a</b>" * n), 200),
}
"""What to repeat, and how often at first."""
