"""Resource limits of parsing. A document that exceeds one fails with a ParserError that names
it."""

from __future__ import annotations

import ctypes
import signal
import sys
from dataclasses import dataclass, fields

from penstock.errors import ConfigError


@dataclass(slots=True, frozen=True)
class ParseLimits:
    input_bytes: int = 50_000_000
    """Size of the document."""
    expanded_bytes: int = 300_000_000
    """Size of what is packed in it (DOCX and its like, EPUB), all files together."""
    expansion_ratio: int = 200
    """How many times its size a packed file of more than a megabyte may be unpacked."""
    entries: int = 10_000
    """Files packed in it."""
    pages: int = 10_000
    characters: int = 20_000_000
    """Of text."""
    scans: int = 0
    """Pages whose text is in a picture; 0: such pages are not read."""
    pixels: int = 50_000_000
    """Of a picture."""
    page_characters: int = 40_000
    """Of text in one picture."""
    seconds: float = 60.0
    """From the request to the answer: for a document, or for one of its pictures."""
    megabytes: int = 1024
    """Memory of the child."""
    requests: int = 1000
    """A child ends after so many, two for a document: what it may have leaked ends with it."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "scans" and value == 0:
                continue
            if not 0 < value < float("inf"):
                raise ConfigError(f"parse limit {each.name} must be a positive number")


_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Linux only. Elsewhere an idle child ends with the pipe, a busy one with its CPU limit."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
