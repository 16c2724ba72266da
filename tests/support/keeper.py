"""`keeper.py MARK FOLDER`: wait until standard input closes, which it does however its owner ends,
then kill every process that has MARK in its environment or works in FOLDER, with its descendants,
and remove FOLDER. (Redis writes its title over its environment.)

A pipe and no PR_SET_PDEATHSIG: that one fires when the thread ends that started the child.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

GIVE_UP_SECONDS = 20.0
PAUSE = 0.05


def main(mark: str, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    give_up = time.monotonic() + GIVE_UP_SECONDS
    quiet = 0
    # Twice in a row: a process may just have been started by one that is gone now.
    while quiet < 2 and time.monotonic() < give_up:
        found = marked(mark.encode(), Path(folder))
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        time.sleep(PAUSE)
    shutil.rmtree(folder, ignore_errors=True)


def marked(mark: bytes, folder: Path) -> set[int]:
    """The processes with `mark` in their environment or `folder` around their current folder, and
    the descendants of those."""
    children: dict[int, list[int]] = {}
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        # Gone, or another user's.
        with contextlib.suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state in "ZX":
                continue
            children.setdefault(int(parent), []).append(int(entry.name))
            if (
                mark in (entry / "environ").read_bytes().split(b"\0")
                or folder in (entry / "cwd").readlink().parents
            ):
                found.append(int(entry.name))
    seen: set[int] = set()
    while found:
        pid = found.pop()
        if pid not in seen:
            seen.add(pid)
            found += children.get(pid, [])
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])
