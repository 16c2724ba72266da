"""What `penstock ingest` is given: files, folders, patterns, addresses, standard input."""

from __future__ import annotations

import asyncio
import glob
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from penstock.cli.errors import InputError

READ_BYTES = 1 << 20
SCAN_SECONDS = 1.0
"""Between two looks at a watched folder, at the least."""
SETTLED_SECONDS = 1.0
"""A file that changed since is perhaps still being written."""


@dataclass(slots=True, frozen=True)
class Item:
    """One document to be: its id, a title where it has none of its own, and what has it."""

    id: str
    title: str
    content: Path | str | bytes
    """A file, an address, or the bytes themselves."""


def is_address(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def from_stdin(document_id: str, most: int) -> Item:
    """All of standard input. Read before anything else, so that Ctrl-C ends it as it does any
    program; and no further than shows that it is too large."""
    return Item(document_id, document_id, sys.stdin.buffer.read(most + 1))


def from_address(url: str) -> Item:
    """The id is the address, as far as it may be shown."""
    from penstock.engine.web_address import web_address  # here: it loads the HTTP library
    from penstock.ingest.remote import name_of
    from penstock.model.errors import AddressRefused

    try:
        return Item(name_of(web_address(url)), "", url)
    except AddressRefused as error:
        raise InputError(str(error)) from None


def from_path(source: str, exclude: Sequence[str], own: Sequence[Path]) -> list[Item]:
    """The files that are meant by a file, a folder or a pattern; InputError if there are none."""
    paths = list(_matching(source))
    if not paths:
        raise InputError(f"no file or folder {source!r}")
    files = [file for path in paths for file in _files(path, exclude, own)]
    if not files:
        raise InputError(f"no files in {source!r}")
    return [Item(file_id(file), file.name, file) for file in files]


def file_id(path: Path) -> str:
    """The path as seen from the current folder; the whole one if it is outside of it."""
    whole, here = os.path.abspath(path), os.getcwd()
    return os.path.relpath(whole, here) if Path(whole).is_relative_to(here) else whole


def _matching(source: str) -> Iterator[Path]:
    if os.path.lexists(source):
        yield Path(source)
    elif glob.has_magic(source):
        yield from map(Path, sorted(glob.glob(source, recursive=True)))


def _files(path: Path, exclude: Sequence[str], own: Sequence[Path]) -> Iterator[Path]:
    """The file, or all that are in the folder, but for hidden ones, those of the queue itself,
    and what is not a file at all."""
    if not path.is_dir():
        if not _excluded(path, exclude):
            yield path
        return
    for folder, folders, names in os.walk(path, onerror=_refuse):
        at = Path(folder)
        folders[:] = sorted(
            name for name in folders if name[0] != "." and not _excluded(at / name, exclude)
        )
        for name in sorted(names):
            file = at / name
            if name[0] == "." or _excluded(file, exclude) or _is_own(file, own):
                continue
            if file.is_file():
                yield file


def _excluded(path: Path, exclude: Sequence[str]) -> bool:
    return any(fnmatch(path.name, pattern) or fnmatch(str(path), pattern) for pattern in exclude)


def _is_own(file: Path, own: Sequence[Path]) -> bool:
    """Whether it is one of these, beside one (`jobs.db-wal`), or in one."""
    path = os.path.abspath(file)
    return any(path == str(one) or path.startswith((f"{one}-", f"{one}/")) for one in own)


def _refuse(error: OSError) -> None:
    raise InputError(f"cannot read the folder {error.filename!r}: {error.strerror}") from error


async def watched(
    sources: Sequence[str], exclude: Sequence[str], own: Sequence[Path], stop: asyncio.Event
) -> AsyncIterator[list[Item] | InputError]:
    """The files of folders as they appear and change, until `stop`. A folder that cannot be read
    for now is said, and looked at again."""
    given: dict[str, tuple[int, int]] = {}
    before: dict[str, tuple[int, int]] = {}
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        begun = loop.time()
        try:
            now = await asyncio.to_thread(_stamps, sources, exclude, own)
        except InputError as error:
            yield error
        else:
            yield [
                Item(id_, path.name, path)
                for id_, (path, stamp, settled) in now.items()
                if stamp != given.get(id_) and (settled or stamp == before.get(id_))
            ]
            given |= {
                id_: stamp
                for id_, (_, stamp, settled) in now.items()
                if settled or stamp == before.get(id_)
            }
            before = {id_: stamp for id_, (_, stamp, _) in now.items()}
        # A large tree is looked at for a tenth of the time at the most.
        pause = max(SCAN_SECONDS, 9 * (loop.time() - begun))
        try:
            await asyncio.wait_for(stop.wait(), pause)
        except TimeoutError:
            continue


def _stamps(
    sources: Sequence[str], exclude: Sequence[str], own: Sequence[Path]
) -> dict[str, tuple[Path, tuple[int, int], bool]]:
    """Each file with what changes when it does, and whether it has not for a while."""
    found = {}
    for source in sources:
        for file in _files(Path(source), exclude, own):
            try:
                stat = file.stat()
            except FileNotFoundError:
                continue  # it was there a moment ago
            settled = time.time() - stat.st_mtime > SETTLED_SECONDS
            found[file_id(file)] = (file, (stat.st_mtime_ns, stat.st_size), settled)
    return found


async def parts_of(path: Path) -> AsyncIterator[bytes]:
    """What a file holds, or InputError: a file that cannot be read is no trouble of the store."""
    try:
        with await asyncio.to_thread(path.open, "rb") as file:
            while part := await asyncio.to_thread(file.read, READ_BYTES):
                yield part
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}") from error
