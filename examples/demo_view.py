"""What the demo shows: events that scroll by, a live view below them, and the sums at the end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

STATES = {"queued": "cyan", "running": "yellow", "completed": "green", "failed": "red"}
SUM_STYLES = {"completed": "green", "dead letters": "red"}
SHOULD_BE_ZERO = ("lost", "results recorded twice")


@dataclass(slots=True)
class WorkerProcess:
    number: int
    process: subprocess.Popen[bytes]
    state: str = "starting"
    done: int = 0

    @classmethod
    def start(cls, number: int, command: list[str], folder: Path, log: Path) -> WorkerProcess:
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return cls(number, process)

    @property
    def pid(self) -> int:
        return self.process.pid


@dataclass(slots=True)
class Progress:
    """What is shown."""

    total: int
    began: float = field(default_factory=time.monotonic)
    states: Counter[str] = field(default_factory=Counter)
    workers: list[WorkerProcess] = field(default_factory=list)
    samples: deque[tuple[float, int]] = field(default_factory=deque)
    """(seconds, jobs finished) at every look."""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def finished(self) -> int:
        return self.states["completed"] + self.states["failed"]

    def rate(self) -> float:
        """Jobs finished per second, over the last second or so."""
        recent = [sample for sample in self.samples if sample[0] > self.seconds - 1.2]
        if len(recent) < 2 or recent[-1][0] == recent[0][0]:
            return 0.0
        return (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])

    def graph(self) -> str:
        """Jobs finished in each third of a second so far, as a line of little bars."""
        at_end_of = {int(at * 3): count for at, count in self.samples}
        counts = [at_end_of[slot] for slot in sorted(at_end_of)]
        steps = [after - before for before, after in pairwise(counts[:-1])]
        most = max(steps, default=0) or 1
        return "".join("▁▂▃▄▅▆▇█"[step * 7 // most] for step in steps[-40:])


class Show:
    """Events scroll by above; below them, on a terminal, a view that is drawn again and again."""

    def __init__(self, progress: Progress, *, record: bool) -> None:
        # A recording has no live view: it would be in it a hundred times.
        self.console = (
            Console(record=True, width=92, force_terminal=True, highlight=False)
            if record
            else Console(highlight=False)
        )
        self._progress = progress
        self._record = record
        self._live = (
            Live(get_renderable=self._view, console=self.console, transient=True)
            if self.console.is_terminal and not record
            else None
        )
        self._spoken = 0.0

    def __enter__(self) -> Show:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, text: str, style: str = "") -> None:
        at = f"{self._progress.seconds:5.1f} s  "
        self.console.print(Text.assemble("  ", (at, "dim"), (text, style)), soft_wrap=True)

    def picture(self) -> None:
        """For a recording: the view as it stands."""
        if self._record:
            self.console.print(self._view(), "")

    def tick(self) -> None:
        """Where nothing can be redrawn, a line now and then."""
        progress = self._progress
        if self._live is None and not self._record and progress.seconds - self._spoken >= 1.5:
            self._spoken = progress.seconds
            counts = ", ".join(f"{progress.states[name]} {name}" for name in STATES)
            self.event(f"{counts}, {progress.rate():.0f} jobs/s", "dim")

    def _view(self) -> RenderableType:
        progress = self._progress
        width = max(20, min(60, self.console.width - 40))
        bars = Table.grid(padding=(0, 2))
        for name, colour in STATES.items():
            count = progress.states[name]
            bar = Bar(progress.total, 0, count, width=width, color=colour, bgcolor="grey15")
            bars.add_row(Text(name, colour), bar, Text(f"{count:>4}", colour))
        workers = Table.grid(padding=(0, 2))
        colours = {"starting": "dim", "working": "green", "killed": "bold red", "stopped": "dim"}
        for worker in progress.workers:
            colour = colours[worker.state]
            workers.add_row(
                f"worker {worker.number}",
                Text(f"process {worker.pid}", "dim"),
                Text(worker.state, colour),
                Text(f"{worker.done:>4} jobs done"),
            )
        head = Text.assemble(
            (f"{progress.finished} of {progress.total} jobs", "bold"),
            f"   {progress.seconds:4.1f} s   {progress.rate():3.0f} jobs/s   ",
            (progress.graph(), "green"),
        )
        return Padding(Group("", head, "", bars, "", workers), (0, 2))

    def sums(self, rows: Sequence[tuple[str, float, str]]) -> None:
        """What was counted at the end: name, number, remark."""
        table = Table.grid(padding=(0, 3))
        table.add_column()
        table.add_column(justify="right", style="bold")
        table.add_column(style="dim")
        for name, number, remark in rows:
            style = SUM_STYLES.get(name, "")
            if name in SHOULD_BE_ZERO:
                style = "red" if number else "green"
            table.add_row(name, Text(str(number), style), remark)
        self.console.print(Padding(table, (1, 2), expand=False))

    def save(self, path: str) -> None:
        """For a recording: write what was shown as a picture."""
        # Without the web font of the template: the picture must not load anything.
        template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        self.console.save_svg(path, title="make demo", code_format=template)


def next_steps(console: Console, kept: str | None) -> None:
    here = Path(sys.executable).parent
    bin_ = "" if shutil.which("penstock") else f"{os.path.relpath(here)}/"
    steps = {
        f"{bin_}python examples/demo.py --keep demo-queue": "again, and keep the queue",
        f"{bin_}python examples/quickstart.py": "a whole program in 20 lines",
        f"{bin_}penstock ingest examples/documents": "documents; then: penstock search '...'",
        f"{bin_}penstock --help": "the command line",
    }
    if kept is not None:
        steps = {
            f"export PENSTOCK_QUEUE=sqlite:///{kept}/jobs.db": "which queue is meant",
            f"{bin_}penstock status": "what there is",
            f"{bin_}penstock dead-letters list": "what failed",
            f"{bin_}penstock dead-letters redrive --all": "queue it again",
            f"{bin_}penstock worker examples.demo:app --drain": "run it",
            f"{bin_}penstock search Frost --queue sqlite:///{kept}/documents.db": "the documents",
        }
    width = max(map(len, steps))
    console.print("  Try next:", style="bold")
    for command, about in steps.items():
        line = Text.assemble("    ", (command.ljust(width), "cyan"), "   ", (about, "dim"))
        console.print(line, soft_wrap=True)
    console.print()
