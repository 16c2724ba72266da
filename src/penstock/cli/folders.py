"""Directories that `penstock ingest --watch` follows: new, changed and deleted files.

Only a scan of all directories decides what has changed. inotify merely says when to scan; if it is
not available, or not for so many directories, they are polled.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from penstock.aio import end_tasks
from penstock.cli.errors import InputError
from penstock.cli.output import note
from penstock.cli.sources import IngestItem, file_id, files, from_file, is_own
from penstock.runtime.inotify import IN_FOLDER, Inotify

POLL_SECONDS = 1.0
"""Polling interval without inotify, or while files have to settle."""
SAFETY_SECONDS = 60.0
"""Polling interval with inotify, in case an event was lost."""
GATHER_SECONDS = 0.1
"""Delay that combines changes at about the same time."""
SETTLED_SECONDS = 1.0
"""A file that changed since may still be being written; one that is gone, being replaced."""


@dataclass(slots=True, frozen=True)
class Gone:
    """A document whose file no longer exists."""

    id: str


Found = list[IngestItem | Gone]


class _File(NamedTuple):
    path: Path
    stamp: tuple[int, int]
    """Changes when the file does."""
    settled: bool
    """Whether it has not changed for a while."""


class Folders:
    """Watches directories. `known` are documents that came from them before, so that their deletion
    is noticed, too. `name` returns the name of a document, given the id of its file."""

    def __init__(
        self,
        sources: Sequence[str],
        exclude: Sequence[str],
        own: Sequence[Path],
        known: Iterable[str] = (),
        name: Callable[[str], str] = str,
    ) -> None:
        self._sources = sources
        self._exclude = exclude
        self._own = own
        self._name = cache(name)
        self._paths = {one: Path(one) for one in known}
        """File of each known document."""
        self._given: dict[str, tuple[int, int]] = {}
        self._seen: dict[str, tuple[tuple[int, int], float]] = {}
        """Stamp of each file, and when it was first seen."""
        self._missing: dict[str, float] = {}
        """Documents whose file is missing, and since when."""
        self._empty: list[str] = []
        """Directories without files: more likely their disk is not mounted than everything was
        deleted."""
        self._waits = False
        self._bell = _Bell(own)

    async def watch(self, stop: asyncio.Event) -> AsyncIterator[Found | InputError]:
        """Yield what each scan finds, until `stop`. A directory that cannot be read is reported and
        scanned again; meanwhile nothing counts as gone."""
        loop = asyncio.get_running_loop()
        self._bell.open()
        try:
            while not stop.is_set():
                begun = loop.time()
                found: Found | InputError
                try:
                    found = self._changes(await asyncio.to_thread(self._look))
                except InputError as error:
                    self._waits, found = True, error
                # A large tree is looked at for a tenth of the time at the most.
                rest = max(GATHER_SECONDS, 9 * (loop.time() - begun))
                yield found
                await self._bell.wait(stop, rest, POLL_SECONDS if self._waits else SAFETY_SECONDS)
        finally:
            self._bell.close()

    def _look(self) -> dict[str, _File]:
        """Scan for files, by id."""
        found: dict[str, _File] = {}
        empty = []
        for source in self._sources:
            inside: dict[str, _File] = {}
            if not Path(source).is_dir():
                raise InputError(f"the folder {source!r} is gone")
            for file in files(Path(source), self._exclude, self._own, self._bell.watch):
                try:
                    stat = file.stat()
                except FileNotFoundError:
                    continue  # it was there a moment ago
                settled = time.time() - stat.st_mtime > SETTLED_SECONDS
                inside[file_id(file)] = _File(file, (stat.st_mtime_ns, stat.st_size), settled)
            found |= inside
            if not inside:
                empty.append(os.path.join(os.path.abspath(source), ""))
        self._empty = empty
        return found

    def _changes(self, now: dict[str, _File]) -> Found:
        moment = time.monotonic()
        seen = {id_: (file.stamp, moment) for id_, file in now.items()}
        for id_, (stamp, _) in seen.items():
            if (before := self._seen.get(id_)) is not None and before[0] == stamp:
                seen[id_] = before
        self._seen = seen
        new = {id_: file for id_, file in now.items() if file.stamp != self._given.get(id_)}
        ready = {
            id_: file
            for id_, file in new.items()
            if file.settled or moment - seen[id_][1] >= SETTLED_SECONDS
        }
        gone = self._gone(now, moment)
        self._given = {id_: stamp for id_, stamp in self._given.items() if id_ in now}
        for id_, file in ready.items():
            self._given[id_] = file.stamp
            self._paths[self._name(id_)] = file.path
        self._waits = len(new) > len(ready) or bool(self._missing)
        # What was renamed is there under its new name before it goes under the old one.
        return [*(from_file(file.path) for file in ready.values()), *map(Gone, gone)]

    def _gone(self, now: dict[str, _File], moment: float) -> list[str]:
        there = {self._name(id_) for id_ in now}
        missing = {
            name
            for name, path in self._paths.items()
            if name not in there
            and not os.path.lexists(path)
            and not os.path.abspath(path).startswith(tuple(self._empty))
        }
        self._missing = {name: self._missing.get(name, moment) for name in missing}
        gone = [name for name, since in self._missing.items() if moment - since >= SETTLED_SECONDS]
        for name in gone:
            del self._missing[name], self._paths[name]
        return gone


class _Bell:
    """Signals changes in the directories, except to our own files."""

    def __init__(self, own: Sequence[Path]) -> None:
        self._own = own
        self._inotify: Inotify | None = None
        self._folders: dict[int, Path] = {}
        self._rung = asyncio.Event()
        self._deaf = False
        """Whether to poll, because inotify is not available."""

    def open(self) -> None:
        self._inotify = Inotify.open()
        self._deaf = self._inotify is None
        if self._inotify is not None:
            asyncio.get_running_loop().add_reader(self._inotify, self._read)

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify)
            self._inotify.close()
            self._inotify = None

    def watch(self, folder: Path) -> None:
        """Watch a directory; called by a thread before it is read, so that nothing is missed."""
        if self._inotify is None:
            return
        try:
            self._folders[self._inotify.watch(folder, IN_FOLDER)] = folder
        except FileNotFoundError:
            return  # it was there a moment ago
        except OSError as error:
            if not self._deaf:
                note(f"looking once a second instead of being told of changes: {error.strerror}")
            self._deaf = True

    def _read(self) -> None:
        assert self._inotify is not None
        for watch, name in self._inotify.read():
            folder = self._folders.get(watch)
            if folder is None or not name or self._matters(folder / name):
                self._rung.set()

    def _matters(self, path: Path) -> bool:
        return path.name[0] != "." and not is_own(path, self._own)

    async def wait(self, stop: asyncio.Event, rest: float, most: float) -> None:
        """Wait for a signal, `stop`, or `most` seconds; at least `rest`, except on `stop`."""
        most = min(most, POLL_SECONDS) if self._deaf else most
        await _first(rest, stop)
        await _first(most - rest, stop, self._rung)
        self._rung.clear()


async def _first(seconds: float, *events: asyncio.Event) -> None:
    """Wait until one of them happens, or the time is up."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(waiting)
