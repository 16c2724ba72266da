"""Proof of life: a file that a process keeps locked while it lives.

Data model of a life file:
    16 bytes   magic
    N slots    (seq: int64, token: int64, end of the job's id: 16 bytes), zero when free: the jobs
               whose handler has started and whose settlement is not stored yet

The kernel drops the lock when the process ends, however it ends. So whoever gets the lock
holds proof that the owner is dead, and the slots say which jobs were really running: those
have spent an attempt, jobs that had only been prefetched have not. Process ids and host names
prove nothing (they are reused, and 1 in every container).

The slots are written through a shared mapping: the page cache keeps them when the process is
killed, at no cost per job beyond a memory write. They are not meant to survive a power loss.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import os
import struct
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock import runtime
from penstock.adapters.private_files import open_private, private_folder
from penstock.errors import QueueUnavailable
from penstock.model.ids import new_id

_MAGIC = b"PENSTOCK-LIFE-2\n"
_PRINT = 16
_SLOT = struct.Struct(f"<qq{_PRINT}s")
_SLOTS = 4096
_SIZE = len(_MAGIC) + _SLOT.size * _SLOTS
SUFFIX = ".life"

Started = Mapping[int, tuple[int, str]]
"""Running jobs: seq to the token of the lease, and the print of the job's id."""


def print_of(job_id: str) -> str:
    """What is kept of a job's id beside its seq, which a server may give again: its end, where ids
    that are made together or of one time differ."""
    return job_id[-_PRINT:]


def runtime_folder(queue: str) -> Path:
    """Where processes of this machine keep their life files, for a queue on a server.

    A folder that other users can write to proves nothing, so each user has one. Processes that
    cannot see each other's (other users, containers, machines) wait for the lease instead.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"penstock-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022 or folder.is_symlink():
        raise PermissionError(errno.EPERM, "belongs to or can be written by another user", folder)
    return folder / hashlib.sha256(queue.encode()).hexdigest()[:16]


class LifeFile:
    """This process's own file. `close` ends it cleanly."""

    def __init__(self, folder: Path) -> None:
        private_folder(folder)
        while True:
            self.path = folder / (new_id() + SUFFIX)
            self._fd = open_private(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            # Somebody cleaning up may have locked or removed it between the two calls.
            if runtime.try_lock(self._fd) and os.fstat(self._fd).st_nlink:
                break
            os.close(self._fd)
        try:
            # Allocated, not sparse: writing to a hole of a mapping on a full disk is SIGBUS.
            os.posix_fallocate(self._fd, 0, _SIZE)
            self._map = _map(self.path)
        except OSError:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            raise
        self._map[: len(_MAGIC)] = _MAGIC
        self._free = list(range(len(_MAGIC), _SIZE, _SLOT.size))[::-1]
        _open_files.add(self)

    @property
    def name(self) -> str:
        return self.path.name

    def mark(self, seq: int, job_id: str, token: int) -> int:
        """Record that the handler of a job starts; the slot to give to `clear`."""
        slot = self._free.pop()
        _SLOT.pack_into(self._map, slot, seq, token, print_of(job_id).encode())
        return slot

    def clear(self, slot: int) -> None:
        if self._map.closed:  # the membership lapsed while the job ran
            return
        _SLOT.pack_into(self._map, slot, 0, 0, b"")
        self._free.append(slot)

    def close(self) -> None:
        if self._map.closed:
            return
        _open_files.discard(self)
        self.path.unlink(missing_ok=True)
        self._map.close()
        os.close(self._fd)

    def _forget_in_child(self) -> None:
        # A forked child shares the open file and with it the lock: it would keep a dead
        # parent alive. Closing the child's descriptor leaves the parent's lock in place.
        os.close(self._fd)


def open_life_file(folder: Path) -> LifeFile:
    """This process's own file; QueueUnavailable where there cannot be one."""
    try:
        return LifeFile(folder)
    except OSError as error:
        raise QueueUnavailable(
            f"cannot write to {folder}: {error.strerror}; worker processes keep a small file there"
        ) from error


def _map(path: Path) -> mmap.mmap:
    # Opened once more: a mapping keeps a duplicate of its descriptor, and a forked child that
    # inherits a duplicate of the locked one would keep the lock.
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(fd, _SIZE)
    finally:
        os.close(fd)


_open_files: weakref.WeakSet[LifeFile] = weakref.WeakSet()


def _close_in_child() -> None:
    for life in list(_open_files):
        with contextlib.suppress(OSError):
            life._forget_in_child()
    _open_files.clear()


os.register_at_fork(after_in_child=_close_in_child)


def started_jobs(path: Path) -> Started | None:
    """The running jobs a life file tells of; None when it cannot tell."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) != _SIZE or not data.startswith(_MAGIC):
        return None
    slots = _SLOT.iter_unpack(data[len(_MAGIC) :])
    return {
        seq: (token, mark.rstrip(b"\0").decode(errors="replace"))
        for seq, token, mark in slots
        if seq
    }


@contextlib.contextmanager
def proven_dead(path: Path) -> Iterator[bool]:
    """Whether the owner of `path` is dead. While True, nobody else can reach that verdict."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False  # no file, no proof: its lease will tell
        return
    try:
        yield runtime.try_lock(fd) and os.fstat(fd).st_nlink > 0
    finally:
        os.close(fd)
