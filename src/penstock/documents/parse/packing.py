"""The protocol between parent and child: frames, and what is packed into them.

A chunk's text is not sent along, but for what it repeats: it is a part of the document's.

A frame is two lengths (4 bytes each), a header in JSON and a body in bytes. The body carries the
document one way and its text the other: text as JSON would hold up the parent's event loop.

    child   {"ready": true}
    parent  {"limits": {...}, "path": "..." or null,      body: the document, unless there is a path
             "scanned": {number: text},                   of pages that are pictures
             "page": number or null,                      only this page, as a picture,
             "languages": "eng+jpn" or null}              or what tesseract reads in that
    child   {"parsed": {...}}                             body: the text
            {"page": number}                              body: the picture as PNG, or its text
    parent  {..., "stage": {...}}                         as above: read it, mask it and cut it
    child   {"staged": {...}, "text": bytes,              body: the text, masked, of so many bytes,
             "chunks": [...]}                             then the terms of each chunk, a line
            {"scans": number}                             pages of it are pictures
    parent  {"limits": {...}, "cut": {...}}               body: the text, masked
    child   {"chunks": [...]}                             body: the terms of each, a line
    child   {"error": message, "reason": word}
            {"config": message}                           something is not installed
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any

from penstock.documents.chunk import ChunkSettings
from penstock.documents.parsed import Heading, PageSpan, Parsed, Table
from penstock.documents.stored_chunks import Uncut
from penstock.model.document import NewChunk, Staged

LENGTHS = struct.Struct(">II")


def packed(header: dict[str, Any], body: bytes = b"") -> list[bytes]:
    encoded = json.dumps(header).encode()
    return [LENGTHS.pack(len(encoded), len(body)), encoded, body]


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read the next frame; None at the end."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    header, body = LENGTHS.unpack(lengths)
    return json.loads(stream.read(header)), stream.read(body)


Frame = tuple[dict[str, Any], bytes]
"""Header and body."""


def pack_parsed(parsed: Parsed) -> Frame:
    fields = asdict(parsed)
    return {"parsed": fields}, fields.pop("text").encode()


def unpack_parsed(header: dict[str, Any], body: bytes) -> Parsed:
    fields = header["parsed"]
    return Parsed(
        text=body.decode(),
        title=fields["title"],
        mime=fields["mime"],
        pages=tuple(PageSpan(*page) for page in fields["pages"]),
        headings=tuple(Heading(*heading) for heading in fields["headings"]),
        metadata=fields["metadata"],
        scans=tuple(fields["scans"]),
        reading=fields["reading"],
        tables=tuple(Table(*table) for table in fields["tables"]),
    )


def pack_uncut(uncut: Uncut, settings: ChunkSettings) -> Frame:
    places = {"labels": uncut.labels, "pages": uncut.pages, "headings": uncut.headings}
    places |= {"tables": uncut.tables}
    return {"cut": {"settings": asdict(settings), **places}}, uncut.text.encode()


def unpack_uncut(header: dict[str, Any], body: bytes) -> tuple[Uncut, ChunkSettings]:
    fields = header["cut"]
    uncut = Uncut(
        body.decode(),
        [(start, end) for start, end in fields["labels"]],
        [PageSpan(*page) for page in fields["pages"]],
        [Heading(*heading) for heading in fields["headings"]],
        [Table(*table) for table in fields["tables"]],
    )
    return uncut, ChunkSettings(**fields["settings"])


def pack_chunks(chunks: Sequence[NewChunk]) -> Frame:
    fields = [one._replace(text=one.repeated, terms="") for one in chunks]
    return {"chunks": fields}, "\n".join(one.terms for one in chunks).encode()


def unpack_chunks(text: str, header: dict[str, Any], body: bytes) -> list[NewChunk]:
    chunks = []
    for fields, terms in zip(header["chunks"], body.decode().split("\n"), strict=False):
        one = NewChunk(*fields)
        pages = None if one.pages is None else (one.pages[0], one.pages[1])
        cut = one.text + text[one.start : one.end]
        starts, section = tuple(one.page_starts), tuple(one.section)
        one = one._replace(text=cut, pages=pages, section=section, terms=terms, page_starts=starts)
        chunks.append(one)
    return chunks


def pack_staged(staged: Staged) -> Frame:
    header, terms = pack_chunks(staged.chunks)
    text = staged.text.encode()
    about: dict[str, Any] = {"title": staged.title, "mime": staged.mime}
    about |= {"masked": dict(staged.masked), "reading": dict(staged.reading)}
    about["seconds"] = dict(staged.seconds)
    return {"staged": about, "text": len(text), **header}, text + terms


def unpack_staged(header: dict[str, Any], body: bytes) -> Staged:
    text = body[: header["text"]].decode()
    chunks = unpack_chunks(text, header, body[header["text"] :])
    return Staged(text, chunks, **header["staged"])
