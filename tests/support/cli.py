"""The `penstock` command in a process of its own, as a person or a script would run it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from penstock import Job, Penstock
from tests.support.forks import WARNINGS, Started, run, start
from tests.support.waiting import PATIENCE, PAUSE

T = TypeVar("T")

MODULE = "penstock.cli"
COMMAND = [sys.executable, "-m", MODULE]
SHOP = Path(__file__).with_name("apps") / "shop.py"


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value and nothing else."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output, which must be one JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, str]:
        """The error that --json has written."""
        error: dict[str, str] = json.loads(self.err)["error"]
        return error


class Running:
    """A command that has been started; what it says goes to files, so that it never blocks."""

    def __init__(self, process: Started, out: Path, err: Path) -> None:
        self.process = process
        self._out, self._err = out, err

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def said(self, text: str) -> None:
        """Wait until it has said `text`, on stdout or stderr."""
        wait_until(lambda: text in self.out or text in self.err, f"{text!r} in {self.err!r}")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, timeout: float = PATIENCE) -> Done:
        """How it ends."""
        code = self.process.wait(timeout)
        return Done(code, self.out, self.err)


class Cli:
    """Runs commands in a folder with a queue and the app `shop:app`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "jobs.db"
        self.url = f"sqlite:///{self.path}"
        (folder / "shop.py").write_text(SHOP.read_text())
        kept = {name: v for name, v in os.environ.items() if not name.startswith("PENSTOCK_")}
        self.environment = {
            **kept,
            "PENSTOCK_QUEUE": self.url,
            "PENSTOCK_DURABLE": "false",  # nothing here is about a power loss
            **WARNINGS,
        }
        self._running: list[Running] = []

    def __call__(
        self,
        *arguments: str,
        code: int = 0,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Done:
        """Run a command to its end; it must end with `code`."""
        ended = run(
            MODULE,
            arguments,
            folder=self.folder,
            environment={**self.environment, **(environment or {})},
            stdin=stdin,
        )
        done = Done(ended.returncode, ended.stdout, ended.stderr)
        assert done.code == code, f"exit code {done.code}, not {code}: {done.err or done.out}"
        assert "Traceback" not in done.err
        return done

    def start(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        wrapper: str = "",
        stdin: int | None = None,
    ) -> Running:
        """Start a command, which reads nothing or from that file."""
        number = len(self._running)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = start(
                MODULE,
                arguments,
                folder=self.folder,
                environment={**self.environment, **(environment or {})},
                stdin=stdin,
                stdout=stdout.fileno(),
                stderr=stderr.fileno(),
                wrapper=wrapper.split(),
            )
        self._running.append(Running(process, out, err))
        return self._running[-1]

    def worker(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Running:
        """Start a worker and wait until it takes jobs."""
        worker = self.start("worker", "shop:app", *arguments, environment=environment)
        worker.said("penstock worker" if "--json" not in arguments else "started")
        return worker

    def on_terminal(
        self,
        *arguments: str,
        code: int = 0,
        typed: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command on a terminal of 100 columns; everything it shows."""
        ours, theirs = pty.openpty()
        process = start(
            MODULE,
            arguments,
            folder=self.folder,
            environment={
                **self.environment,
                "TERM": "xterm-256color",
                "COLUMNS": "100",
                "LINES": "40",
                **(environment or {}),
            },
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = _read_all(ours)
        assert process.wait(PATIENCE) == code, shown
        return shown

    def call(self, coroutine: Coroutine[Any, Any, T], app: Penstock) -> T:
        """Do something with the library, past the command line."""

        async def inside() -> T:
            async with app:
                return await coroutine

        return asyncio.run(inside())

    def enqueue(self, kind: str, payload: dict[str, Any] | None = None, **options: Any) -> str:
        """A job's id, enqueued by the library."""
        app = Penstock(self.url, durable=False)
        return self.call(app.enqueue(kind, payload, **options), app).id

    def job(self, job_id: str) -> Job:
        app = Penstock(self.url, durable=False)
        return self.call(app.get(job_id), app)

    def close(self) -> None:
        """End what the test has left running."""
        for running in self._running:
            if running.process.poll() is None:
                running.process.kill()
            running.process.wait(PATIENCE)


def wait_until(condition: Any, what: str, patience: float = PATIENCE) -> None:
    """Return when `condition()` is true; fail when patience ends. A look that is a process of its
    own takes no more than a quarter of the time from what is looked at."""
    give_up = time.monotonic() + patience
    while True:
        begun = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < give_up, f"waited {patience:g} s in vain for {what}"
        time.sleep(max(PAUSE, min(1.0, 3 * (now - begun))))


def _read_all(terminal: int) -> str:
    """What is shown until the other side is closed."""
    parts = []
    try:
        while select.select([terminal], [], [], PATIENCE)[0]:
            if not (part := os.read(terminal, 65536)):
                break
            parts.append(part)
    except OSError:  # Linux says EIO when the last process has closed its side
        pass
    finally:
        os.close(terminal)
    return b"".join(parts).decode()
