"""What `make chaos` counted, kept as JSON: for each queue, what every fault came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parent / "chaos.json"


@dataclass(slots=True, frozen=True)
class Cell:
    """One fault on one queue."""

    fault: str
    counted_from: str
    """What the seconds begin with."""
    jobs: int = 0
    lost: int = 0
    stale: int = 0
    """Results that a holder wrote who had lost the job."""
    seconds: float = 0.0
    """Until all jobs that it interrupted were done."""
    why_not: str = ""
    """Where it does not apply, or could not be done: why."""


@dataclass(slots=True, frozen=True)
class Column:
    """One queue."""

    machine: Mapping[str, str]
    cells: Sequence[Cell]

    def of(self, facts: Mapping[str, str]) -> bool:
        """Whether it was counted at the same commit."""
        return "commit" in facts and self.machine.get("commit") == facts["commit"]


def read(file: Path = FILE) -> dict[str, Column]:
    """By queue."""
    if not file.exists():
        return {}
    return {
        queue: Column(data["machine"], [Cell(**cell) for cell in data["cells"]])
        for queue, data in json.loads(file.read_text()).items()
    }


def keep(queue: str, column: Column, file: Path = FILE) -> None:
    """In place of what was counted on this queue before; the others stay."""
    columns = read(file) | {queue: column}
    data = {
        name: {"machine": dict(one.machine), "cells": [asdict(cell) for cell in one.cells]}
        for name, one in sorted(columns.items())
    }
    file.write_text(json.dumps(data, indent=1) + "\n")
