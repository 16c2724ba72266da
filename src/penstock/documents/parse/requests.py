"""Requests that a parser understands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from penstock.documents.chunk import ChunkSettings
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.packing import (
    Frame,
    pack_uncut,
    unpack_chunks,
    unpack_parsed,
    unpack_staged,
)
from penstock.documents.parsed import Parsed
from penstock.documents.stored_chunks import Uncut
from penstock.errors import ParserError
from penstock.model.document import NewChunk, Staged


class Scans(NamedTuple):
    """An incomplete document: some pages are scanned."""

    pages: int


class Parsing(ABC):
    """The requests; a subclass sends them to children."""

    def __init__(self, limits: ParseLimits) -> None:
        self._limits = limits

    @abstractmethod
    async def ask(self, question: dict[str, Any], body: bytes) -> Frame:
        """Send a request. Raises ParserError, ConfigError."""

    async def parse(
        self, source: bytes | Path, scanned: Mapping[int, str] | None = None, web: str | None = None
    ) -> Parsed:
        """Parse a document, given as its bytes or the path of a file. `scanned` is the text of
        scanned pages, by number. `web`: it comes from a web server, which declared this charset.

        Raises ParserError with a reason, ConfigError if a library is missing.
        """
        return unpack_parsed(*await self._of(source, scanned=scanned, question={"web": web}))

    async def stage(
        self, source: bytes | Path, title: str, settings: ChunkSettings, web: str | None = None
    ) -> Staged | Scans:
        """Parse, mask (with the built-in patterns) and chunk a document in one step: unmasked text
        stays in the child. `title` is used if the document has none. Raises what `parse` does."""
        question = {"stage": {"title": title, "settings": asdict(settings)}, "web": web}
        header, body = await self._of(source, question=question)
        if "scans" in header:
            return Scans(header["scans"])
        return unpack_staged(header, body)

    async def picture(self, source: bytes | Path, page: int) -> bytes:
        """Render a page (from 1) as PNG. Raises what `parse` does."""
        _, png = await self._of(source, page)
        return png

    async def ocr(self, source: bytes | Path, page: int, languages: str) -> str:
        """Read a page (from 1) with tesseract. Raises what `parse` does; ConfigError also if
        tesseract or a language is missing."""
        _, text = await self._of(source, page, languages)
        return text.decode()

    async def cut(self, uncut: Uncut, settings: ChunkSettings) -> list[NewChunk]:
        """Chunk a masked text. Raises what `parse` does."""
        answer = await self.ask(*pack_uncut(uncut, settings))
        return unpack_chunks(uncut.text, *answer)

    async def _of(
        self,
        source: bytes | Path,
        page: int | None = None,
        languages: str | None = None,
        scanned: Mapping[int, str] | None = None,
        question: Mapping[str, Any] | None = None,
    ) -> Frame:
        if isinstance(source, bytes) and len(source) > self._limits.input_bytes:
            raise ParserError(f"larger than {self._limits.input_bytes} bytes", "oversized")
        asked = {"scanned": dict(scanned or {}), "page": page, "languages": languages}
        return await self.ask(*_about(source, {**asked, **(question or {})}))


def _about(source: bytes | Path, question: dict[str, Any]) -> Frame:
    if isinstance(source, bytes):
        return {"path": None, **question}, source
    return {"path": str(source.absolute()), **question}, b""
