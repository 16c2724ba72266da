"""Web pages, and the chapters of EPUB: the visible text."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.documents.parse.draft import Draft, one_line
from penstock.documents.parse.tags import Tag, tags

_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "iframe"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "aside", "header", "footer", "main", "nav", "ul", "ol"}
    | {"li", "dl", "dt", "dd", "blockquote", "figure", "figcaption", "form", "fieldset", "address"}
    | {"details", "summary", "hr", "body", "caption", "center"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def read_html(
    text: str, draft: Draft, *, own_title: bool = True, without: Iterable[str] = ()
) -> None:
    """Extract the visible text. `without`: elements to leave out, with their content."""
    title = read_tags(tags(text), draft, without)
    if own_title:
        draft.title = title


def read_tags(found: Iterable[Tag], draft: Draft, without: Iterable[str] = ()) -> str | None:
    """Process tags; returns the title."""
    page = _Page(draft, _UNSEEN.union(without))
    for kind, value in found:
        match kind:
            case "text":
                page.text(value)
            case "start":
                page.start(value)
            case _:
                page.end(value)
    page.finish()
    return one_line(page.title) or None


class _Page:
    """Processes tags one by one without building a tree, so depth costs nothing."""

    def __init__(self, draft: Draft, left_out: frozenset[str]) -> None:
        self._draft = draft
        self._left_out = left_out
        self._pieces: list[str] = []
        self._unseen: dict[str, None] = {}
        """Enclosing invisible elements, outermost first. Of several with the same name the
        outermost counts, because their first end tag closes it."""
        self._in_title = False
        self._level = 0
        self._preformatted = 0
        self._cells: list[str] = []
        self._in_cell = False
        self.title = ""

    def start(self, tag: str) -> None:
        if tag in self._left_out:
            self._unseen.setdefault(tag)
        elif self._unseen:
            return
        elif tag == "title":
            self._in_title = not self.title
        elif tag == "br":
            self._pieces.append("\n")
        elif tag in _HEADINGS:
            self.end_block()
            self._level = _HEADINGS[tag]
        elif tag == "pre":
            self.end_block()
            self._preformatted += 1
        elif tag in ("td", "th"):
            self._end_cell()
            self._in_cell = True
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_row()
            self.end_block()
        elif tag in _BLOCKS:
            self.end_block()
            if tag == "li":
                self._pieces.append("- ")

    def end(self, tag: str) -> None:
        if tag in self._left_out:
            if tag in self._unseen:
                while self._unseen.popitem()[0] != tag:
                    pass
        elif self._unseen:
            return
        elif tag == "title":
            self._in_title = False
        elif tag in _HEADINGS:
            self.end_block()
            self._level = 0
        elif tag == "pre":
            self.end_block()
            self._preformatted = max(0, self._preformatted - 1)
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_row()
            self._draft.end_table()
        elif tag in _BLOCKS:
            self.end_block()

    def text(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._unseen:
            self._pieces.append(data)

    def end_block(self) -> None:
        """End a paragraph; inside a cell the text becomes part of the cell."""
        if self._in_cell:
            self._pieces.append(" ")
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._preformatted:
            self._draft.block(text.strip("\n"))
        elif self._level:
            self._draft.heading(self._level, text)
        elif (shown := "\n".join(map(one_line, text.split("\n")))).strip(" -\n"):
            self._draft.block(shown)

    def finish(self) -> None:
        """End the page, and with it whatever was not closed."""
        self._end_row()
        self.end_block()

    def _end_cell(self) -> None:
        if self._in_cell:
            self._cells.append("".join(self._pieces))
            self._pieces.clear()
            self._in_cell = False

    def _end_row(self) -> None:
        self._end_cell()
        if self._cells:
            self._draft.row(self._cells)
            self._cells = []
