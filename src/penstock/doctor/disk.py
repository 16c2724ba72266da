"""Checks directories: writable, enough disk space, not world-readable."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from penstock.doctor.context import SQLITE, Case, DiskLimits, in_thread
from penstock.doctor.diagnosis import Diagnosis, broken, ok, warning

MOUNTS = Path("/proc/self/mountinfo")


async def look(case: Case) -> list[Diagnosis]:
    said = await in_thread(_look, list(_folders(case)), case.disk)
    return said + await in_thread(_open_to_all, list(_kept(case)))


def _folders(case: Case) -> Iterator[tuple[str, Path]]:
    """Iterate over the directories on this machine that hold data."""
    for part, path in _databases(case):
        yield part, path.parent
    if case.config.blobs and case.blobs is not None:  # else it is beside the store
        yield "blobs", case.blobs
    yield "temporary files", Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())


def _databases(case: Case) -> Iterator[tuple[str, Path]]:
    for part, url in (("queue", case.config.queue), ("store", case.config.store)):
        if url.startswith(SQLITE):
            yield part, Path(url.removeprefix(SQLITE)).expanduser().absolute()


def _kept(case: Case) -> Iterator[tuple[str, Path]]:
    """Iterate over private files and directories."""
    for part, path in _databases(case):
        yield part, path
        yield f"{part} log", path.with_name(path.name + "-wal")
    if case.blobs is not None:
        yield "originals", case.blobs


def _open_to_all(kept: list[tuple[str, Path]]) -> list[Diagnosis]:
    """Warn of data that every user of this machine can read, created by older versions or by
    others."""
    said = []
    for part, path in kept:
        if not path.exists() or not path.parent.stat().st_mode & stat.S_IXOTH:
            continue
        if path.stat().st_mode & stat.S_IROTH:
            mode = "700" if path.is_dir() else "600"
            found = f"every user of this machine can read {path}"
            said.append(warning(f"{part} mode", found, f"chmod {mode} {path}"))
    return said


def _look(folders: list[tuple[str, Path]], limits: DiskLimits) -> list[Diagnosis]:
    said = []
    for part, folder in folders:
        said.append(judge_space(part, folder, limits))
        if (trouble := _permissions(part, folder)) is not None:
            said.append(trouble)
    return said


def judge_space(part: str, folder: Path, limits: DiskLimits) -> Diagnosis:
    name, place = f"{part} disk", _existing(folder)
    disk = os.statvfs(place)
    free = disk.f_bavail * disk.f_frsize
    found = f"{_size(free)} free for {folder}"
    if free < limits.broken:
        advice = f"free disk space: below {_size(limits.broken)} writes are about to fail"
        return broken(name, found, advice)
    if free < limits.warning:
        return warning(name, found, f"free disk space: at least {_size(limits.warning)} is needed")
    return ok(name, found)


def _permissions(part: str, folder: Path) -> Diagnosis | None:
    if not folder.exists():
        return None
    name = f"{part} folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        found = f"{folder} cannot be written to"
        return broken(name, found, "let the user that runs Penstock write to it")
    mode = folder.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        found = f"every user of this machine can change and delete what is in {folder}"
        return warning(name, found, f"chmod o-w {folder}")
    return None


def unwritable(path: Path) -> str | None:
    """Explain why a file or its directory cannot be written; None if it can."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{folder} is mounted read-only"
    places = [folder, *(path.with_name(path.name + end) for end in ("", "-wal", "-shm"))]
    closed = [one for one in places if one.exists() and not os.access(one, os.W_OK)]
    return f"{closed[0]} cannot be written to" if closed else None


def file_system(path: Path, mounts: str | None = None) -> str:
    """Return the type of the file system that `path` is, or would be, on."""
    place = _existing(path.absolute()).resolve()
    best, kind = -1, "unknown"
    for line in (MOUNTS.read_text() if mounts is None else mounts).splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split()[4].replace("\\040", " "))
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split()[0]
    return kind


def _existing(path: Path) -> Path:
    """Return `path`, or its nearest existing parent."""
    return next(one for one in (path, *path.parents) if one.exists())


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
