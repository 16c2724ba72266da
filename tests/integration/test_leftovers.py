"""The tests' own servers: they leave nothing behind, and run wherever the clone is."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import wait_until
from tests.support.database_servers import postgres_copy, postgres_wheel
from tests.support.forks import WITH_INTERRUPTS
from tests.support.run_folder import MARK, run_folder
from tests.support.sampling import some_of

ROOT = Path(__file__).parents[2]
PATIENCE = 100.0


@pytest.mark.parametrize(
    "how", some_of(["SIGKILL to all", "SIGKILL", "SIGTERM", "SIGINT"], "SIGKILL to all")
)
def test_servers_and_workers_end_with_the_run_however_it_ends(how: str, tmp_path: Path) -> None:
    """Started by a fork that runs tests. The signal hits its parent, or both, so that nobody is
    left whose children the servers are."""
    report = tmp_path / "report.json"
    arguments = ["--workers", "1", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
    with (tmp_path / "log").open("wb") as log:
        run = subprocess.Popen(
            [
                *(*WITH_INTERRUPTS, sys.executable, "-m", "pytest", *arguments),
                "tests/support/endless_run.py",
            ],
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if name != MARK},
                "LINGERING_REPORT": str(report),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_until(
            lambda: report.exists() or run.poll() is not None, "the servers to be up", PATIENCE
        )
        assert report.exists(), (tmp_path / "log").read_text()
        told = json.loads(report.read_text())
        folders = [Path(folder) for folder in told["folders"]]
        assert all(folder.exists() for folder in folders)
        assert all(map(alive, told["processes"]))
        if how == "SIGKILL to all":
            os.killpg(run.pid, signal.SIGKILL)
        else:
            run.send_signal(signal.Signals[how])
        wait_until(lambda: not any(map(alive, told["processes"])), "their ends", PATIENCE)
        wait_until(lambda: not folders[0].parent.exists(), "the run's folder to go", PATIENCE)
    finally:
        run.kill()
        run.wait(PATIENCE)


def test_a_copy_of_postgresql_is_whole_and_made_once() -> None:
    """Made where root's clone cannot be read by the user that PostgreSQL runs as."""
    copy = postgres_copy(postgres_wheel())
    for program in ("initdb", "postgres", "pg_isready", "psql"):
        subprocess.run([copy / "bin" / program, "--version"], check=True)
    assert copy.is_relative_to(run_folder())
    made = copy.stat().st_ctime_ns
    assert postgres_copy(postgres_wheel()) == copy
    assert copy.stat().st_ctime_ns == made


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
