"""Worker processes of the contenders, as the harness holds them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).parent.parent
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.005
"""Between two looks from outside: the error of every time that ends with one."""


class WorkerProcess:
    """See `benchmarks.contenders.worker` for the other side. Leaving the block ends it."""

    def __init__(
        self, command: list[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._errors = folder / f"worker-{time.monotonic_ns()}.stderr"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                env={**os.environ, **(environment or {})},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def dead(self) -> bool:
        return self._process.poll() is not None

    def ready(self) -> Self:
        """Wait until the worker is ready to start."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"a worker process did not start: {self.errors()[-2000:]}")
        return self

    def go(self) -> Self:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        return self

    def told(self) -> str:
        """The next line it says; it is waited for."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker process ended: {self.errors()[-2000:]}")
        return line

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; returns when it is dead."""
        self._process.kill()
        self._process.wait()

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def errors(self) -> str:
        return self._errors.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if error is not None:
            error.add_note(f"a worker process said: {self.errors()[-2000:]}")
        try:
            self._process.stdin.close()
            self._process.wait(STOP_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
        self._process.stdout.close()


def wait_until(
    condition: Callable[[], bool],
    what: str,
    worker: WorkerProcess | None = None,
    patience: float = 120.0,
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Look again and again; TimeoutError after `patience` s, sooner if `worker` has died."""
    give_up = time.monotonic() + patience
    while not condition():
        if worker is not None and worker.dead:
            raise RuntimeError(f"a worker process died before {what}: {worker.errors()[-2000:]}")
        if time.monotonic() > give_up:
            raise TimeoutError(f"waited {patience:g} s in vain for {what}")
        time.sleep(look_seconds)
