"""Proof of life: a lock that a process holds for as long as it lives, and no longer."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.life_file import SUFFIX, LifeFile, print_of, proven_dead, started_jobs
from tests.support.waiting import PATIENCE

MARKED = {7: (3, print_of("seven")), 9: (5, print_of("nine"))}
OWNER = """
import os, signal, subprocess, sys
from pathlib import Path
from penstock.adapters.life_file import LifeFile

life = LifeFile(Path(sys.argv[1]))
life.mark(7, "seven", 3)
life.clear(life.mark(8, "eight", 4))
life.mark(9, "nine", 5)
child = 0
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        signal.pause()
if "fork and exit" in sys.argv:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
if "spawn" in sys.argv:
    child = subprocess.Popen(["sleep", "60"], close_fds=False).pid
print(life.name, child, flush=True)
sys.stdin.readline()
if "exit" in sys.argv:
    os._exit(1)
os.kill(os.getpid(), signal.SIGKILL)
"""
LOOK = """
import sys
from pathlib import Path
from penstock.adapters.life_file import proven_dead

with proven_dead(Path(sys.argv[1])) as dead:
    print(dead)
"""


class Owner:
    """A process that holds a life file until told to die."""

    def __init__(self, folder: Path, *how: str, prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", OWNER, str(folder), *how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        name, child = self.process.stdout.readline().decode().split()
        self.path, self.child = folder / name, int(child)

    def die(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.process.wait(timeout=PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        if self.child:
            os.kill(self.child, signal.SIGKILL)


@contextmanager
def owner(folder: Path, *how: str, prefix: tuple[str, ...] = ()) -> Iterator[Owner]:
    process = Owner(folder, *how, prefix=prefix)
    try:
        yield process
    finally:
        process.close()


def is_dead(path: Path) -> bool:
    with proven_dead(path) as dead:
        return dead


def soon_dead(path: Path) -> bool:
    """The kernel frees the lock while it takes the process apart, which may take a moment."""
    give_up = time.monotonic() + PATIENCE
    while not is_dead(path):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


def test_owner_lives_for_its_own_process_too(tmp_path: Path) -> None:
    life = LifeFile(tmp_path)
    other = LifeFile(tmp_path)

    assert not is_dead(life.path)
    assert not is_dead(life.path), "looking does not take the lock away"
    other.close()
    assert not is_dead(life.path)
    life.close()


def test_closed_file_is_gone_and_proves_nothing(tmp_path: Path) -> None:
    life = LifeFile(tmp_path)
    life.close()

    assert not life.path.exists()
    assert not is_dead(life.path)
    assert started_jobs(life.path) is None


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    life = LifeFile(tmp_path)
    life.close()
    with (tmp_path / "other").open("w") as other:  # may well get the number of the closed file
        life.close()
        other.write("x")


def test_killed_process_is_dead_at_once_and_its_notes_remain(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        assert not is_dead(process.path)
        assert started_jobs(process.path) == MARKED
        process.die()
        assert soon_dead(process.path)
        assert started_jobs(process.path) == MARKED


def test_stopped_process_lives(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        process.process.send_signal(signal.SIGSTOP)
        assert not is_dead(process.path)
        process.process.send_signal(signal.SIGCONT)


def test_forked_child_does_not_keep_its_dead_parent_alive(tmp_path: Path) -> None:
    with owner(tmp_path, "fork") as process:
        assert not is_dead(process.path)
        process.die()
        os.kill(process.child, 0)  # it lives
        assert soon_dead(process.path)


def test_spawned_child_does_not_keep_its_dead_parent_alive(tmp_path: Path) -> None:
    with owner(tmp_path, "spawn") as process:
        assert not is_dead(process.path)
        process.die()
        os.kill(process.child, 0)
        assert soon_dead(process.path)


def test_child_that_exits_does_not_free_the_lock_of_its_parent(tmp_path: Path) -> None:
    with owner(tmp_path, "fork and exit") as process:
        assert not is_dead(process.path)
        process.die()
        assert soon_dead(process.path)


UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")


def can_unshare() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="needs root and unshare")
def test_life_is_told_across_pid_namespaces(tmp_path: Path) -> None:
    """Every container has a process 1; the lock does not care."""

    def look_from_another_namespace(path: Path) -> str:
        command = [*UNSHARE, sys.executable, "-c", LOOK, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with owner(tmp_path, "exit", prefix=UNSHARE) as process:
        assert not is_dead(process.path)
        assert look_from_another_namespace(process.path) == "False"
        process.die()
        assert soon_dead(process.path)
        assert look_from_another_namespace(process.path) == "True"


def test_only_one_at_a_time_holds_the_proof(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        process.die()
        assert soon_dead(process.path)
        with proven_dead(process.path) as first, proven_dead(process.path) as second:
            assert (first, second) == (True, False)
        assert is_dead(process.path), "the proof can be had again"


def test_file_removed_by_whoever_was_first_proves_nothing(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        process.die()
        assert soon_dead(process.path)
        with proven_dead(process.path) as dead:
            assert dead
            process.path.unlink()
        assert not is_dead(process.path)


def test_missing_file_proves_nothing(tmp_path: Path) -> None:
    assert not is_dead(tmp_path / "missing.life")
    assert started_jobs(tmp_path / "missing.life") is None


@pytest.mark.parametrize("content", [b"", b"PENSTOCK-LIFE-1\n", b"x" * 65552])
def test_file_that_cannot_tell_tells_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.life"
    path.write_bytes(content)

    assert started_jobs(path) is None


def test_files_have_names_of_their_own(tmp_path: Path) -> None:
    files = [LifeFile(tmp_path / "new" / "folder") for _ in range(20)]

    assert len({life.name for life in files}) == 20
    assert all(life.name.endswith(SUFFIX) for life in files)
    for life in files:
        life.close()
    assert list((tmp_path / "new" / "folder").iterdir()) == []


def test_space_is_taken_when_the_file_is_made(tmp_path: Path) -> None:
    """A note must never fail later because the disk is full."""
    life = LifeFile(tmp_path)
    status = life.path.stat()
    life.close()

    assert status.st_blocks * 512 >= status.st_size > 4096


def test_file_that_cannot_be_made_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        LifeFile(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_clearing_after_closing_is_harmless(tmp_path: Path) -> None:
    life = LifeFile(tmp_path)
    slot = life.mark(1, "one", 1)
    life.close()
    life.clear(slot)


def test_there_is_room_for_every_job_a_process_can_run(tmp_path: Path) -> None:
    life = LifeFile(tmp_path)
    slots = [life.mark(seq, "job", 1) for seq in range(1, 2001)]

    assert len(set(slots)) == 2000
    assert started_jobs(life.path) == dict.fromkeys(range(1, 2001), (1, print_of("job")))
    life.close()


@settings(max_examples=50)
@given(st.lists(st.one_of(st.tuples(st.integers(1, 2**62), st.integers(1, 2**62)), st.none())))
def test_notes_are_what_was_marked_and_not_cleared(steps: list[tuple[int, int] | None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = LifeFile(Path(folder))
        marked: dict[int, tuple[int, int]] = {}
        for step in steps:
            if step is None:
                if marked:
                    slot = next(iter(marked))
                    life.clear(slot)
                    del marked[slot]
            elif step[0] not in dict(marked.values()):
                seq, token = step
                marked[life.mark(seq, f"job {token}", token)] = step
            prints = {seq: (token, print_of(f"job {token}")) for seq, token in marked.values()}
            assert started_jobs(life.path) == prints
        life.close()
