"""`one_at_a_time.py FILE COMMAND...` runs COMMAND while nobody else runs one with that FILE."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path


def main(file: str, *command: str) -> int:
    with Path(file).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.call(command, close_fds=False)  # make hands its own down


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
