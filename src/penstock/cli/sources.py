"""Sources of `penstock ingest`: files, directories, patterns, URLs, standard input."""

from __future__ import annotations

import asyncio
import glob
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from penstock.cli.errors import InputError

READ_BYTES = 1 << 20
STDIN = "standard input"


@dataclass(slots=True, frozen=True)
class IngestItem:
    """A document to ingest: its id, a default title, and its content."""

    id: str
    title: str
    content: Path | str | bytes
    """A file, a URL, or the bytes themselves."""
    origin: str
    """Its origin, whatever its name."""


def is_address(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def from_stdin(document_id: str, most: int) -> IngestItem:
    """Read standard input. Before anything else, so that Ctrl-C ends it as in any program; and only
    far enough to see that it is too large."""
    return IngestItem(document_id, document_id, sys.stdin.buffer.read(most + 1), STDIN)


def from_address(url: str) -> IngestItem:
    """Create an item for a URL. The id is the URL, as far as it may be shown."""
    from penstock.documents.addresses import name_of
    from penstock.errors import AddressRefused
    from penstock.outbound.web_address import web_address  # here: it loads the HTTP library

    try:
        shown = name_of(web_address(url))
        return IngestItem(shown, "", url, shown)
    except AddressRefused as error:
        raise InputError(str(error)) from None


def from_path(source: str, exclude: Sequence[str], own: Sequence[Path]) -> list[IngestItem]:
    """List the files of a file name, directory or pattern; raises InputError if there are none."""
    paths = list(_matching(source))
    if not paths:
        raise InputError(f"no file or folder {source!r}")
    found = [file for path in paths for file in files(path, exclude, own)]
    if not found:
        raise InputError(f"no files in {source!r}")
    return [from_file(file) for file in found]


def from_file(file: Path) -> IngestItem:
    return IngestItem(file_id(file), file.name, file, file_id(file))


def file_id(path: Path) -> str:
    """Return the path relative to the current directory; the absolute one if it is outside."""
    whole, here = os.path.abspath(path), os.getcwd()
    return os.path.relpath(whole, here) if Path(whole).is_relative_to(here) else whole


def _matching(source: str) -> Iterator[Path]:
    if os.path.lexists(source):
        yield Path(source)
    elif glob.has_magic(source):
        yield from map(Path, sorted(glob.glob(source, recursive=True)))


def files(
    path: Path,
    exclude: Sequence[str],
    own: Sequence[Path],
    enter: Callable[[Path], None] = lambda folder: None,
) -> Iterator[Path]:
    """Iterate over the file, or all files in the directory, except hidden ones, those of the queue
    itself, and special files. `enter` is called with each directory before it is read."""
    if not path.is_dir():
        if not _excluded(path, exclude):
            yield path
        return
    enter(path)
    for folder, folders, names in os.walk(path, onerror=_refuse):
        at = Path(folder)
        folders[:] = sorted(
            name for name in folders if name[0] != "." and not _excluded(at / name, exclude)
        )
        for name in folders:
            enter(at / name)
        for name in sorted(names):
            file = at / name
            if name[0] == "." or _excluded(file, exclude) or is_own(file, own):
                continue
            if file.is_file():
                yield file


def _excluded(path: Path, exclude: Sequence[str]) -> bool:
    return any(fnmatch(path.name, pattern) or fnmatch(str(path), pattern) for pattern in exclude)


def is_own(file: Path, own: Sequence[Path]) -> bool:
    """Whether it is one of these, beside one (`jobs.db-wal`), or in one."""
    path = os.path.abspath(file)
    return any(path == str(one) or path.startswith((f"{one}-", f"{one}/")) for one in own)


def _refuse(error: OSError) -> None:
    raise InputError(f"cannot read the folder {error.filename!r}: {error.strerror}") from error


async def parts_of(path: Path) -> AsyncIterator[bytes]:
    """Read a file; raises InputError, because an unreadable file is not an error of the store."""
    try:
        with await asyncio.to_thread(path.open, "rb") as file:
            while part := await asyncio.to_thread(file.read, READ_BYTES):
                yield part
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}") from error
