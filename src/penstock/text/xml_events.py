"""Parses untrusted XML as a stream of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.parsers import expat

from penstock.errors import ParserError

_MOST_DEEP = 2_000
_LONGEST_NAME = 1_000
"""Of a tag or an attribute, with the name space, which is repeated with each."""
_MOST_SILENT = 2_000_000
"""Bytes without a tag or text, so of one tag, or of comments. A tag is looked at from its start
with each block that it goes on in."""

Event = tuple[str, str, dict[str, str]]
"""("start", tag, attributes), ("end", tag, {}) or ("text", characters, {}); names are local."""


def events(blocks: Iterable[bytes]) -> Iterator[Event]:
    """XML as it is read. Declarations of types are refused: they are how entities become bombs,
    and none of the formats we read has one."""
    waiting: list[Event] = []
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_DEEP:
            raise ParserError("XML nested too deep", "bomb")
        if len(name) > _LONGEST_NAME or any(len(key) > _LONGEST_NAME for key in attributes):
            raise ParserError(f"XML with a name of over {_LONGEST_NAME} characters", "bomb")
        waiting.append(("start", name.rpartition(" ")[2], _local(attributes)))

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        waiting.append(("end", name.rpartition(" ")[2], {}))

    def doctype(*_: object) -> None:
        raise ParserError("XML with a declaration of its type", "bomb")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda data: waiting.append(("text", data, {}))
    parser.StartDoctypeDeclHandler = doctype
    try:
        silent = 0
        for block in blocks:
            parser.Parse(block, False)
            silent = 0 if waiting else silent + len(block)
            if silent > _MOST_SILENT:
                raise ParserError(f"XML with a tag of over {_MOST_SILENT} bytes", "bomb")
            yield from waiting
            waiting.clear()
        parser.Parse(b"", True)
        yield from waiting
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise ParserError("it holds XML that is not whole", "corrupt") from error


def _local(attributes: dict[str, str]) -> dict[str, str]:
    """Without name spaces, but `r:id` (what a part refers to) is not `id`."""
    local = {}
    for key, value in attributes.items():
        space, _, name = key.rpartition(" ")
        local[f"r:{name}" if space.endswith("relationships") else name] = value
    return local
