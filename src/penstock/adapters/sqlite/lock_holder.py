"""Tells who keeps a SQLite file locked: this process itself, or another."""

from __future__ import annotations

from pathlib import Path

from penstock import runtime

_WRITER = 120
"""The byte of the file's `-shm` that who writes has locked; see SQLite's wal.c."""


def who_locked(path: Path, seconds: float) -> str:
    """Who has done so for so long, and what to do."""
    if _locked_here(path):
        return (
            f"this process itself for over {seconds:g} s: it has a transaction open on a "
            "connection of its own, and perhaps waits for this before it ends that; enqueue with "
            "conn= and that connection, or commit first"
        )
    return f"another program for over {seconds:g} s; close whatever holds it open in a transaction"


def _locked_here(path: Path) -> bool:
    """Whether a connection of this process has a write transaction open. The kernel tells of
    the locks of others only, so its list is read. False where there is no such list."""
    try:
        inode = path.with_name(path.name + "-shm").stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        match line.split():
            case [_, "POSIX", _, "WRITE", pid, place, first, last] if (
                pid == str(runtime.process_id())
                and place.rpartition(":")[2] == str(inode)
                and int(first) <= _WRITER
                and (last == "EOF" or int(last) >= _WRITER)
            ):
                return True
    return False
