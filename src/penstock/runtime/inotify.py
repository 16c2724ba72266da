"""inotify: changes of files and folders, as the kernel reports them. Linux only."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("penstock.inotify")

MODIFIED = 0x2
IN_FOLDER = 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Something in a folder, or the folder itself, was made, written and closed, moved, removed, or got
another time."""
OVERFLOW = -1
"""Told instead of a watch when the kernel could not keep up: then anything may have changed."""


class FileChange(NamedTuple):
    watch: int
    name: str
    """Of what changed in a folder that is watched; else empty."""


class Inotify:
    """Watches files and folders. `fileno` is readable when there is something to `read`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def open(cls) -> Inotify | None:
        """None where there is none: then changes have to be looked for."""
        if not sys.platform.startswith("linux") or os.environ.get("PENSTOCK_NO_INOTIFY"):
            return None
        fd: int = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:
            problem = os.strerror(ctypes.get_errno())
            log.warning("no inotify (%s): polling for changes instead", problem)
            return None
        return cls(fd)

    def fileno(self) -> int:
        return self._fd

    def watch(self, path: Path, mask: int) -> int:
        """The number that changes of `path` are told by; the same for the same path."""
        watch: int = _libc().inotify_add_watch(self._fd, os.fsencode(path), mask)
        if watch < 0:
            code = ctypes.get_errno()
            hint = " (raise fs.inotify.max_user_watches)" if code == errno.ENOSPC else ""
            raise OSError(code, os.strerror(code) + hint, str(path))
        return watch

    def read(self) -> list[FileChange]:
        """What has changed, as far as one read tells."""
        try:
            data = os.read(self._fd, 4096)
        except BlockingIOError:
            return []
        changes, at = [], 0
        while at < len(data):
            watch = int.from_bytes(data[at : at + 4], sys.byteorder, signed=True)
            end = at + 16 + int.from_bytes(data[at + 12 : at + 16], sys.byteorder)
            changes.append(FileChange(watch, os.fsdecode(data[at + 16 : end].rstrip(b"\0"))))
            at = end
        return changes

    def close(self) -> None:
        os.close(self._fd)


@cache
def _libc() -> ctypes.CDLL:
    """As this process has it: `ctypes.util.find_library` would run `ldconfig`."""
    return ctypes.CDLL(None, use_errno=True)
