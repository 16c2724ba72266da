"""Opens zipped documents (DOCX, PPTX, XLSX, EPUB), after checking the archive."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from penstock.documents.parse.limits import ParseLimits
from penstock.errors import ParserError
from penstock.text.xml_events import Event, events

_ENCRYPTED = 0x1
_SMALL = 1_000_000
_BLOCK = 262_144


class Archive:
    """A zip archive. Sizes are those of its directory; reading stops there, so larger files cannot
    hide."""

    def __init__(self, data: bytes, limits: ParseLimits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            infos = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError) as error:
            raise ParserError(f"damaged zip file: {type(error).__name__}", "corrupt") from error
        self._named: set[str] = set()
        self._sizes = {info.filename: info.file_size for info in infos}
        if len(infos) > limits.entries:
            raise ParserError(f"more than {limits.entries} files are packed in it", "bomb")
        if sum(info.file_size for info in infos) > limits.expanded_bytes:
            raise ParserError(f"unpacks to more than {limits.expanded_bytes} bytes", "bomb")
        for info in infos:
            if info.file_size > max(_SMALL, info.compress_size * limits.expansion_ratio):
                raise ParserError(f"unpacks {limits.expansion_ratio} times and more", "bomb")
            if info.flag_bits & _ENCRYPTED:
                raise ParserError("it is password-protected", "encrypted")
            # No document is packed otherwise, and these two are unpacked in small pieces.
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ParserError("unsupported zip compression", "corrupt")

    def __contains__(self, name: str) -> bool:
        return name in self._sizes

    def is_new(self, name: str) -> bool:
        """Whether the file exists and is requested for the first time: shared files are read
        once."""
        if name in self._named:
            return False
        self._named.add(name)
        return name in self

    def open(self, name: str) -> IO[bytes]:
        try:
            return self._zip.open(name)
        except (KeyError, zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise ParserError("a required file is missing in the archive", "corrupt") from error

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return b"".join(_blocks(file))

    def xml(self, name: str) -> Iterator[Event]:
        with self.open(name) as file:
            yield from events(_blocks(file))

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Relations of an office document's `part`: kind and target by id."""
        folder, name = posixpath.split(part)
        rels = posixpath.join(folder, "_rels", f"{name}.rels")
        if rels not in self:
            return {}
        found = {}
        for kind, tag, attributes in self.xml(rels):
            if kind == "start" and tag == "Relationship" and "Target" in attributes:
                target = posixpath.normpath(posixpath.join(folder, attributes["Target"]))
                if attributes["Target"].startswith("/"):
                    target = attributes["Target"].lstrip("/")
                type_ = attributes.get("Type", "").rpartition("/")[2]
                found[attributes.get("Id", "")] = (type_, target)
        return found


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    try:
        while block := file.read(_BLOCK):
            yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise ParserError("a file in the archive is damaged", "corrupt") from error
