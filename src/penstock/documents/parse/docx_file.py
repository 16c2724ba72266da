"""Word documents: paragraphs, headings, tables, notes."""

from __future__ import annotations

import re

from penstock.documents.parse.archive import Archive
from penstock.documents.parse.draft import Draft

MAIN = "word/document.xml"
_HEADING_NAME = re.compile(r"(?i)(?:heading|見出し|제목|überschrift|titre) ?([1-9])")
_SKIPPED = frozenset({"Fallback", "del", "moveFrom"})
"""Elements to skip: alternative versions of content that is already there, and deletions."""


def read_docx(archive: Archive, draft: Draft) -> None:
    read_core(archive, draft)
    levels = _heading_levels(archive)
    for part in (MAIN, "word/footnotes.xml", "word/endnotes.xml"):
        if part in archive:
            _read_part(archive, part, levels, draft)


def read_core(archive: Archive, draft: Draft) -> None:
    """Read title and author, which all office formats store in the same place."""
    if "docProps/core.xml" not in archive:
        return
    wanted = ("title", "creator", "subject", "created", "language")
    pieces: dict[str, list[str]] = {key: [] for key in wanted}
    inside = ""
    for kind, name, _ in archive.xml("docProps/core.xml"):
        if kind == "start":
            inside = name
        elif kind == "text" and inside in pieces:
            pieces[inside].append(name)
        elif kind == "end":
            inside = ""
    values = {key: "".join(found) for key, found in pieces.items()}
    draft.title = values.pop("title")
    draft.note("author", values.pop("creator"))
    for key, value in values.items():
        draft.note(key, value)


def _heading_levels(archive: Archive) -> dict[str, int]:
    """Heading levels by style id: from the style's outline level, or its name."""
    if "word/styles.xml" not in archive:
        return {}
    levels: dict[str, int] = {}
    style = ""
    for kind, name, attributes in archive.xml("word/styles.xml"):
        if kind != "start":
            continue
        value = attributes.get("val", "")
        if name == "style":
            style = attributes.get("styleId", "") if attributes.get("type") == "paragraph" else ""
        elif name == "name" and style:
            if match := _HEADING_NAME.fullmatch(value.strip()):
                levels[style] = int(match[1])
            elif value.lower() == "title":
                levels[style] = 1
        elif name == "outlineLvl" and style and value in set("012345678"):
            levels.setdefault(style, int(value) + 1)
    return levels


def _read_part(archive: Archive, part: str, levels: dict[str, int], draft: Draft) -> None:
    skipped = 0
    in_text = in_properties = False
    tables = 0
    level = 0
    paragraphs: list[list[str]] = []  # those of text boxes stand inside others
    cells: list[list[str]] = []  # each in its paragraphs
    for kind, name, attributes in archive.xml(part):
        if kind == "start" and (skipped or name in _SKIPPED):
            skipped += 1
        elif kind == "end" and skipped:
            skipped -= 1
        elif skipped:
            continue
        elif kind == "text":
            if in_text and paragraphs:
                paragraphs[-1].append(name)
        elif kind == "start":
            match name:
                case "p":
                    paragraphs.append([])
                    level = 0
                case "pPr":
                    in_properties = True
                case "pStyle":
                    level = levels.get(attributes.get("val", ""), 0)
                case "outlineLvl" if attributes.get("val", "") in set("012345678"):
                    level = int(attributes["val"]) + 1
                case "t":
                    in_text = True
                case "tab" if paragraphs and not in_properties:
                    paragraphs[-1].append("\t")
                case "br" | "cr" if paragraphs:
                    paragraphs[-1].append("\n")
                case "noBreakHyphen" if paragraphs:
                    paragraphs[-1].append("-")
                case "tbl":
                    tables += 1
                case "tr" if tables == 1:
                    cells = []
                case "tc" if tables == 1:
                    cells.append([])
        else:
            match name:
                case "t":
                    in_text = False
                case "pPr":
                    in_properties = False
                case "p" if paragraphs:
                    text = "".join(paragraphs.pop())
                    if tables and cells:
                        cells[-1].append(text)
                    elif level:
                        draft.heading(level, text)
                    else:
                        draft.block(text)
                    level = 0
                case "tr" if tables == 1:
                    draft.row(map(" ".join, cells))
                case "tbl":
                    tables -= 1
                    if not tables:
                        cells = []
                        draft.end_table()
