"""One run of the tests: a folder for its servers, and a keeper that cleans up after it.

Everything a run starts carries the run's folder in its environment. The keeper is a process of its
own that waits for the end of the run, whatever ends it, then kills what carries that mark and
removes the folder. The first process of a run starts it; the others find the mark and share the
folder.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "RUN_OF_TESTS"
"""Not PENSTOCK_...: those are settings, which tests leave out of the environments they make."""
KEEPER = Path(__file__).with_name("keeper.py")


def run_folder() -> Path:
    """The folder of this run, which other users may enter; removed when the run ends."""
    if MARK not in os.environ:
        folder = tempfile.mkdtemp(prefix="penstock-tests-")
        Path(folder).chmod(0o711)  # root runs PostgreSQL as nobody
        _start_keeper(folder)
        os.environ[MARK] = folder
    return Path(os.environ[MARK])


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Hold a lock that all processes of the run share."""
    with (run_folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start_keeper(folder: str) -> None:
    # Isolated and without site-packages: it starts at once and imports nothing of ours.
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", str(KEEPER), f"{MARK}={folder}", folder],
        stdin=subprocess.PIPE,
        cwd="/",
        start_new_session=True,  # a Ctrl-C at the tests is not for it
    )
    assert keeper.stdin is not None
    # A fork that outlives the run must not hold it open.
    os.register_at_fork(after_in_child=keeper.stdin.close)
    atexit.register(keeper.wait, 30)
    atexit.register(keeper.stdin.close)  # which ends it, and is done first
