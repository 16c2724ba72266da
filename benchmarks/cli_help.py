"""How long `penstock --help` takes, from the start of the process to its end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes


def run(sizes: Sizes, folder: Path) -> list[Result]:
    command = [str(Path(sys.executable).with_name("penstock")), "--help"]
    spent = []
    for _ in range(1 + sizes.help_runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        spent.append(time.perf_counter() - start)
    figure = Figure.of("penstock", spent[1:])  # the first also reads the files from disk
    note = "With compiled bytecode, as `make setup` and pip leave it."
    target = AtMost(0.2, "s")
    return [Result("command line", "penstock --help", "s", figure, None, Better.LESS, target, note)]
