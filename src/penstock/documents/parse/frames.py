"""The protocol between parent and child.

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
from typing import IO, Any

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
