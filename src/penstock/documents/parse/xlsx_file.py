"""Workbooks: a sheet is a heading and a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum, auto
from math import isfinite

from penstock.documents.parse.archive import Archive
from penstock.documents.parse.docx_file import read_core
from penstock.documents.parse.draft import Draft, clean, one_line

MAIN = "xl/workbook.xml"
_STRINGS = "xl/sharedStrings.xml"
_STYLES = "xl/styles.xml"
# Formats every program knows by number to be dates or times.
_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
_PERCENT_FORMATS = {9, 10}
_DATE_CODE = re.compile(r"(?i)[ymdhs]")
_LONGEST_FORMAT = 255  # as many characters as programs allow
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 (a sheet's dates have no zone)
_LAST_DAY = 2_958_466  # the year 10000
_DIGITS = 15
"""Significant digits that programs display; files contain binary rounding noise."""
_WIDEST_GAP = 16
"""Maximum empty cells kept between two; a sheet may have 16,384 of them in every row."""


class NumberStyle(Enum):
    """The number format of a cell."""

    NUMBER = auto()
    DATE = auto()
    PERCENT = auto()


def read_xlsx(archive: Archive, draft: Draft) -> None:
    read_core(archive, draft)
    strings = list(_shared_strings(archive)) if _STRINGS in archive else []
    styles = _styles(archive) if _STYLES in archive else []
    relations = archive.relations(MAIN)
    for kind, name, attributes in archive.xml(MAIN):
        if kind == "start" and name == "sheet":
            _, part = relations.get(attributes.get("r:id", ""), ("", ""))
            if archive.is_new(part):
                draft.heading(1, attributes.get("name", ""))
                for cells in _rows(archive, part, strings, styles):
                    draft.row(cells)
                draft.end_table()


def _shared_strings(archive: Archive) -> Iterator[str]:
    text, in_text, in_reading_aid = "", False, False
    for kind, name, _ in archive.xml(_STRINGS):
        if kind == "text" and in_text:
            text += name
        elif kind == "start":
            in_text = name == "t" and not in_reading_aid
            in_reading_aid = in_reading_aid or name == "rPh"
        elif kind == "end":
            in_text = False
            in_reading_aid = in_reading_aid and name != "rPh"
            if name == "si":
                yield one_line(clean(text))  # as it is shown: many cells may have the same one
                text = ""


def _styles(archive: Archive) -> list[NumberStyle]:
    """Number formats by cell style."""
    own: dict[str, NumberStyle] = {}
    styles: list[NumberStyle] = []
    inside = False
    for kind, name, attributes in archive.xml(_STYLES):
        if kind == "start" and name == "numFmt":
            code = _LITERAL.sub("", attributes.get("formatCode", "")[:_LONGEST_FORMAT])
            own[attributes.get("numFmtId", "")] = _by_code(code)
        elif name == "cellXfs":
            inside = kind == "start"
        elif kind == "start" and name == "xf" and inside:
            number = attributes.get("numFmtId", "0")
            styles.append(own.get(number) or _by_number(number))
    return styles


def _by_code(code: str) -> NumberStyle:
    if "%" in code:
        return NumberStyle.PERCENT
    return NumberStyle.DATE if _DATE_CODE.search(code) else NumberStyle.NUMBER


def _by_number(number: str) -> NumberStyle:
    known = int(number) if number.isdecimal() else 0
    if known in _PERCENT_FORMATS:
        return NumberStyle.PERCENT
    return NumberStyle.DATE if known in _DATE_FORMATS else NumberStyle.NUMBER


def _rows(
    archive: Archive, part: str, strings: list[str], styles: list[NumberStyle]
) -> Iterator[list[str]]:
    cells: list[str] = []
    value, kind_of_cell, style, in_value, column = "", "", 0, False, 0
    for kind, name, attributes in archive.xml(part):
        if kind == "text":
            if in_value:
                value += name
        elif kind == "start":
            match name:
                case "row":
                    cells, column = [], 0
                case "c":
                    at = _column(attributes.get("r", "")) or column + 1
                    cells += [""] * min(max(0, at - column - 1), _WIDEST_GAP)
                    column, value = at, ""
                    kind_of_cell = attributes.get("t", "n")
                    style = int(s) if (s := attributes.get("s", "0")).isdecimal() else 0
                case "v" | "t":
                    in_value = True
        else:
            match name:
                case "v" | "t":
                    in_value = False
                case "c":
                    shown = styles[style] if style < len(styles) else NumberStyle.NUMBER
                    cells.append(_shown(value, kind_of_cell, shown, strings))
                case "row":
                    yield cells


def _column(reference: str) -> int:
    """Column of a cell: C7 is in column 3. The last one is XFD."""
    number = 0
    for sign in reference[:3]:
        if not "A" <= sign <= "Z":
            break
        number = number * 26 + ord(sign) - 64
    return number


def _shown(value: str, kind: str, style: NumberStyle, strings: list[str]) -> str:
    if kind == "s":
        index = int(value) if value.strip().isdecimal() else len(strings)
        return strings[index] if index < len(strings) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind != "n":
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    if not isfinite(number):
        return value
    match style:
        case NumberStyle.DATE:
            return _date(value, number)
        case NumberStyle.PERCENT:
            return f"{_rounded(str(100 * number), 100 * number)}%"
        case _:
            return _rounded(value, number)


def _rounded(value: str, number: float) -> str:
    """Round to the displayed digits. Integers are kept, since they may be identifiers, such as card
    numbers."""
    whole = "." not in value or abs(number) >= 10**_DIGITS
    return value if whole else f"{number:.{_DIGITS}g}"


def _date(value: str, days: float) -> str:
    if not 0 <= days < _LAST_DAY:
        return value
    moment = _EPOCH + timedelta(seconds=round(days * 86400))
    if days < 1:
        return f"{moment:%H:%M:%S}"
    return f"{moment:%Y-%m-%d}" if days == int(days) else f"{moment:%Y-%m-%d %H:%M:%S}"
