"""`penstock worker --processes N` and `--reload`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.cli.supervisor import WorkerProcesses, own_arguments, snapshot
from tests.support.cli import Cli, Running, wait_until

APP = """
import os
from penstock import JobContext, Penstock

app = Penstock()


@app.job
async def who(ctx: JobContext) -> str:
    return "%s"
"""


def started(running: Running) -> list[int]:
    """The worker processes that have started, in that order."""
    events = [json.loads(line) for line in running.out.split("\n")[:-1]]
    return [event["pid"] for event in events if event["event"] == "started"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def cli(cli: Cli) -> Cli:
    (cli.folder / "app.py").write_text(APP % "old")
    return cli


def test_a_process_that_dies_is_replaced_and_a_stop_ends_all(cli: Cli) -> None:
    running = cli.start("worker", "app:app", "--processes", "2", "--json")
    wait_until(lambda: len(started(running)) == 2, "two processes")
    first, second = started(running)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(started(running)) == 3, "another process")
    assert '"pause": 1.0' in running.out
    assert is_alive(second), "the other has gone on"
    os.kill(second, signal.SIGTERM)  # which was for the supervisor to do
    wait_until(lambda: len(started(running)) == 4, "one in its place")
    running.send(signal.SIGTERM)
    assert running.end().code == 0
    assert not any(is_alive(pid) for pid in started(running))


def test_processes_end_with_their_supervisor_and_with_an_empty_queue(cli: Cli) -> None:
    running = cli.start("worker", "app:app", "--processes=1", "--json")
    wait_until(lambda: len(started(running)) == 1, "a process")
    running.send(signal.SIGKILL)
    wait_until(lambda: not is_alive(started(running)[0]), "its end")
    cli("enqueue", "who")
    cli("worker", "app:app", "--processes", "2", "--drain")
    assert [job["state"] for job in cli("jobs", "list", "--json").json] == ["completed"]


def test_an_app_that_is_not_there_ends_all(cli: Cli) -> None:
    assert "no module 'nothing'" in cli("worker", "nothing:app", "--processes", "2", code=2).err


def test_exit_code_of_a_process_that_has_just_ended_is_not_lost() -> None:
    """It is read by whoever waits for the process, not by who tells it to stop."""
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"])
    assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT) is not None
    process: Any = SimpleNamespace(pid=child.pid, returncode=None, send_signal=child.send_signal)
    WorkerProcesses._signal([process])
    assert child.returncode is None
    assert child.wait() == 2


def test_changed_code_is_run(cli: Cli) -> None:
    running = cli.start("worker", "app:app", "--reload", "--json")
    wait_until(lambda: len(started(running)) == 1, "a process")
    (cli.folder / "app.py").write_text("this is no Python")
    wait_until(lambda: '"waiting"' in running.out, "it waits for the next change")
    (cli.folder / "app.py").write_text(APP % "quite new")
    wait_until(lambda: len(started(running)) == 2, "the process of the new code")
    assert "quite new" in cli("enqueue", "who", "--wait").out
    running.send(signal.SIGINT)
    assert running.end().code == 0


def test_arguments_of_the_processes() -> None:
    given = ["--json", "worker", "app:app", "--processes", "3", "--kinds", "a", "--reload"]
    assert own_arguments(given) == ["--json", "worker", "app:app", "--kinds", "a", "--supervised"]
    assert own_arguments(["worker", "--processes=3"], reload=True) == [
        *("worker", "--grace", "2", "--supervised")
    ]
    kept = ["worker", "--grace=9", "--supervised"]
    assert own_arguments(["worker", "--grace=9"], reload=True) == kept


def test_only_code_of_the_app_is_watched(tmp_path: Path) -> None:
    for name in ("a.py", "b/c.py", "b/d.txt", ".git/e.py", "env/pyvenv.cfg", "env/f.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = snapshot(tmp_path)
    assert found.keys() == {str(tmp_path / "a.py"), str(tmp_path / "b/c.py")}
