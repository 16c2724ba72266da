"""Presentations: a slide is a page, its title a heading; notes follow their slide."""

from __future__ import annotations

from penstock.documents.parse.archive import Archive
from penstock.documents.parse.docx_file import read_core
from penstock.documents.parse.draft import Draft

MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})


def read_pptx(archive: Archive, draft: Draft) -> None:
    read_core(archive, draft)
    relations = archive.relations(MAIN)
    for kind, name, attributes in archive.xml(MAIN):
        if kind == "start" and name == "sldId":
            _, slide = relations.get(attributes.get("r:id", ""), ("", ""))
            if archive.is_new(slide):
                draft.page()
                _read_shapes(archive, slide, draft)
                for target_kind, target in archive.relations(slide).values():
                    if target_kind == "notesSlide" and archive.is_new(target):
                        _read_shapes(archive, target, draft)


def _read_shapes(archive: Archive, part: str, draft: Draft) -> None:
    placeholder = ""
    in_text = in_cell = False
    lines: list[list[str]] = []  # each in the pieces that it comes in
    cells: list[str] = []
    for kind, name, attributes in archive.xml(part):
        if kind == "text":
            if in_text:
                lines[-1].append(name)
        elif kind == "start":
            match name:
                case "sp" | "graphicFrame":
                    placeholder, lines = "", []
                case "ph":
                    placeholder = attributes.get("type", "body")
                case "p":
                    lines.append([])
                case "br" if lines:
                    lines[-1].append("\n")
                case "t" if lines:
                    in_text = True
                case "tr":
                    cells = []
                case "tc":
                    in_cell, lines = True, []
        else:
            match name:
                case "t":
                    in_text = False
                case "tc":
                    in_cell = False
                    cells.append(" ".join(map("".join, lines)))
                    lines = []
                case "tr":
                    draft.row(cells)
                case "tbl":
                    draft.end_table()
                case "txBody" if not in_cell:
                    if placeholder in _TITLES:
                        draft.heading(1, " ".join(map("".join, lines)))
                    elif placeholder not in _FURNITURE:
                        draft.block("\n".join(map("".join, lines)))
                    lines = []
