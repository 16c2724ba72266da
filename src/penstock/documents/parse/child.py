"""The child's side: parses, masks and chunks one document at a time, until the parent closes the
pipe.

Nothing it prints goes anywhere: a library's message may quote the document.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from dataclasses import replace
from typing import IO, Any

from penstock.documents.chunk import ChunkSettings
from penstock.documents.mask import mask
from penstock.documents.mask_document import prepare
from penstock.documents.parse.child_limits import die_with_parent
from penstock.documents.parse.frames import packed, read_frame
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.ocr import read_picture
from penstock.documents.parse.packing import (
    Frame,
    pack_chunks,
    pack_parsed,
    pack_staged,
    unpack_uncut,
)
from penstock.documents.parse.picture import picture
from penstock.documents.parse.read import read
from penstock.documents.parsed import Parsed
from penstock.documents.stored_chunks import cut
from penstock.errors import ConfigError, ParserError

_ADDRESS_SPACE = 2
"""Multiple of the memory limit: libraries map more than they use. The parent watches actual use."""


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    die_with_parent()
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    _say(answers, {"ready": True})
    while frame := read_frame(requests):
        header, body = frame
        limits = ParseLimits(**header["limits"])
        _restrict(limits)
        _say(answers, *_answer(header, body, limits))


def _say(answers: IO[bytes], header: dict[str, Any], body: bytes = b"") -> None:
    answers.writelines(packed(header, body))
    answers.flush()


def _restrict(limits: ParseLimits) -> None:
    """Set the limits for the next document. The parent's clock decides; these apply if it cannot
    watch."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + limits.seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    space = (_ADDRESS_SPACE * limits.megabytes + 512) * 1_000_000
    with contextlib.suppress(ValueError, OSError):  # some systems know no such limit
        resource.setrlimit(resource.RLIMIT_AS, (space, resource.RLIM_INFINITY))


def _answer(asked: dict[str, Any], body: bytes, limits: ParseLimits) -> Frame:
    try:
        if "cut" in asked:
            return pack_chunks(cut(*unpack_uncut(asked, body)))
        data = body if asked["path"] is None else _load(asked["path"], limits)
        if asked["page"] is None:
            scanned = {int(page): text for page, text in asked["scanned"].items()}
            begun = time.monotonic()
            parsed = read(data, limits, scanned, asked["web"])
            if "stage" not in asked:
                return pack_parsed(parsed)
            return _staged(parsed, time.monotonic() - begun, **asked["stage"])
        seen = picture(data, asked["page"], limits)
        if asked["languages"] is None:
            return {"page": asked["page"]}, seen.png()
        return {"page": asked["page"]}, read_picture(seen, asked["languages"], limits).encode()
    except ParserError as error:
        return {"error": error.message, "reason": error.reason}, b""
    except ConfigError as error:
        return {"config": str(error)}, b""
    except MemoryError:
        return {"error": f"needs more than {limits.megabytes} MB", "reason": "memory"}, b""
    except RecursionError:
        return {"error": "nested too deeply", "reason": "bomb"}, b""
    except Exception as error:
        # Its message may quote the document, its type does not.
        return {"error": f"reading it failed: {type(error).__name__}", "reason": "corrupt"}, b""


def _load(path: str, limits: ParseLimits) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(limits.input_bytes + 1)
    except OSError as error:
        raise ParserError(f"the file cannot be read: {error.strerror}", "unreadable") from error


def _staged(parsed: Parsed, took: float, title: str, settings: dict[str, int]) -> Frame:
    """Mask and chunk a parsed document; `took` is how long parsing took."""
    if parsed.scans:
        return {"scans": len(parsed.scans)}, b""
    begun = time.monotonic()
    ready = prepare(parsed, title, mask)
    masked = time.monotonic()
    chunks = cut(ready.uncut, ChunkSettings(**settings))
    seconds = {"parse": took, "mask": masked - begun, "chunk": time.monotonic() - masked}
    return pack_staged(replace(ready.staged(chunks, parsed.mime), seconds=seconds))


if __name__ == "__main__":
    main()
