"""A contender on a server: its enqueuing side and its workers are processes of their own.

So a peer may run under another Python, with the versions of packages that it asks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.contenders.worker import worker_command
from benchmarks.processes import ROOT, STOP_SECONDS, WorkerProcess


@dataclass(slots=True, frozen=True)
class Served:
    """One queue. The mappings are settings that its module understands."""

    name: str
    module: str
    python: str = sys.executable
    missing: str = ""
    """Why it cannot run here; empty when it can."""
    base: Mapping[str, Any] = field(default_factory=dict)
    """Ten jobs at a time and what it needs to be reliable; leases as they are by default."""
    fastest: Sequence[Mapping[str, Any]] = ({},)
    """Worker settings tried for throughput; the best counts."""
    prompt: Mapping[str, Any] = field(default_factory=dict)
    """For the least latency."""
    leased: Mapping[str, Any] = field(default_factory=dict)
    """With a lease of a few seconds, so that a takeover can be seen."""
    remark: str = ""

    def sender(self, url: str, folder: Path, settings: Mapping[str, Any]) -> Sender:
        program = ["-m", "benchmarks.contenders.sender", self._module()]
        settings = {**self.base, **settings, "url": url}
        return Sender([self.python, *program, str(folder), json.dumps(settings)], folder)

    def worker(
        self,
        url: str,
        folder: Path,
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        settings = {**self.base, **settings, "url": url}
        command = worker_command(self._module(), folder, settings, self.python)
        return WorkerProcess(command, folder, environment)

    def _module(self) -> str:
        return f"benchmarks.contenders.{self.module}"


class Sender:
    """The enqueuing process. See `benchmarks.contenders.sender` for the other side."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._errors = folder / "sender.stderr"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
            )

    def send(self, job: str, payload: dict[str, Any]) -> str:
        return str(self._call("send", job=job, payload=payload))

    def fill(self, job: str, payload: dict[str, Any], count: int) -> float:
        """Enqueue many in the fastest way there is; the seconds it took."""
        arguments = {"job": job, "payload": payload, "count": count}
        return float(self._call("fill_seconds", **arguments))

    def latencies(self, count: int) -> list[float]:
        return [float(latency) for latency in self._call("latencies", count=count)]

    def results(self, ids: Sequence[str]) -> list[Any]:
        return list(self._call("results", ids=ids))

    def work_left(self) -> bool:
        return bool(self._call("work_left"))

    def finished(self) -> int:
        return int(self._call("finished"))

    def record(self, job_id: str) -> dict[str, Any]:
        return dict(self._call("record", job_id=job_id))

    def _call(self, call: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a sender process ended: {self._errors.read_text()[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"a sender process failed: {answer['error']}")
        return answer["value"]

    def __enter__(self) -> Self:
        try:
            self._answer()  # it is ready
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(STOP_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
