"""HTML as a sequence of tags and text.

The standard library's parser takes minutes for a few hundred kilobytes of unclosed quotes or
comments. This one looks at every character a fixed number of times, because it needs less: names
of tags, no attributes, no tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

Tag = tuple[str, str]
"""("start", name), ("end", name) or ("text", characters)."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:_-]{0,40}")
_QUOTE_OR_END = re.compile(r"[\"'>]")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
}
"""Elements whose content is text up to their own end tag."""


def tags(text: str) -> Iterator[Tag]:
    position = 0
    finder = _Finder(text)
    while (at := text.find("<", position)) >= 0:
        if at > position:
            yield "text", unescape(text[position:at])
        if text.startswith(("<!", "<?"), at):
            position = _behind_declaration(finder, text, at)
            continue
        end_tag = text.startswith("/", at + 1)
        name = _NAME.match(text, at + 1 + end_tag)
        if name is None:
            yield "text", "<"
            position = at + 1
            continue
        position = _behind_tag(finder, text, name.end())
        tag = name[0].lower()
        if end_tag:
            yield "end", tag
            continue
        yield "start", tag
        if text.endswith("/>", at, position):  # XHTML closes empty elements so
            yield "end", tag
        elif tag in _RAW:
            ends = _RAW[tag].search(text, position)
            stop = ends.start() if ends else len(text)
            yield "text", unescape(text[position:stop]) if tag == "title" else text[position:stop]
            position = stop
    if position < len(text):
        yield "text", unescape(text[position:])


class _Finder:
    """Remembers which patterns do not occur any more, so that they are not searched for again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def behind(self, what: str, start: int) -> int | None:
        if what in self._missing:
            return None
        at = self._text.find(what, start)
        if at < 0:
            self._missing.add(what)
            return None
        return at + len(what)


def _behind_declaration(finder: _Finder, text: str, at: int) -> int:
    """Skip a comment or declaration; one that is never closed ends at the next >."""
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>")):
        if text.startswith(opening, at) and (end := finder.behind(closing, at + len(opening))):
            return end
    return finder.behind(">", at) or len(text)


def _behind_tag(finder: _Finder, text: str, start: int) -> int:
    """Skip to the > that closes a tag, ignoring those in quoted values if the quote is closed."""
    position = start
    while sign := _QUOTE_OR_END.search(text, position):
        if sign[0] == ">":
            return sign.end()
        before = text[position : sign.start()]
        position = sign.end()
        if before.rstrip().endswith("="):
            closed = finder.behind(sign[0], position)
            if closed is None:
                break
            start = position = closed
    return finder.behind(">", start) or len(text)
