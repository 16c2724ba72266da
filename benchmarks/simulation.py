"""What the simulation has tried, kept as JSON: seeds that pass, and bugs that were put back.

`python -m tests.simulation ... --keep` counts seeds, and `python -m tests.simulation.planted_bugs`
looks for the bugs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "simulation.json"
ROOT = Path(__file__).parents[1]
COUNTED = 100
"""Seeds with which every planted bug is tried."""


@dataclass(slots=True, frozen=True)
class Passed:
    """The seeds from 0 on that pass on a queue."""

    seeds: int
    code: str
    """A hash of what was simulated: of the engine, the simulator and the workload."""


@dataclass(slots=True, frozen=True)
class PlantedBug:
    """A bug that was put back, and the seed that found it first."""

    bug: str
    queue: str
    first: int | None
    """None: no seed has."""
    tried: int
    """So many seeds, from 0 on."""
    hits: int
    """How many of the first `COUNTED` find it."""
    says: str
    """What that seed says of it."""


@dataclass(slots=True)
class Tried:
    """All of it."""

    passed: dict[str, Passed] = field(default_factory=dict)
    bugs: list[PlantedBug] = field(default_factory=list)


def read(file: Path = FILE) -> Tried:
    if not file.exists():
        return Tried()
    data = json.loads(file.read_text())
    return Tried(
        {queue: Passed(**one) for queue, one in data["passed"].items()},
        [PlantedBug(**one) for one in data["bugs"]],
    )


def passed(queue: str, file: Path = FILE) -> int:
    """Seeds that need not be tried again: they pass with the code as it is."""
    known = read(file).passed.get(queue)
    return known.seeds if known is not None and known.code == code() else 0


@cache
def code(root: Path = ROOT) -> str:
    """Of all that decides what a seed does, whether it is committed or not."""
    found = hashlib.sha256()
    files = [*(root / "src").rglob("*"), root / "tests" / "simulation" / "workload.py"]
    for path in sorted(path for path in files if path.suffix in (".py", ".sql")):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def count(queue: str, seeds: int, file: Path = FILE) -> None:
    """All seeds below this pass."""
    tried = read(file)
    tried.passed[queue] = Passed(max(seeds, passed(queue, file)), code())
    _write(tried, file)


def keep_bugs(bugs: Sequence[PlantedBug], file: Path = FILE) -> None:
    """In place of those that were looked for before."""
    tried = read(file)
    tried.bugs = list(bugs)
    _write(tried, file)


def _write(tried: Tried, file: Path) -> None:
    data = {
        "passed": {queue: asdict(one) for queue, one in sorted(tried.passed.items())},
        "bugs": [asdict(one) for one in tried.bugs],
    }
    file.write_text(json.dumps(data, indent=1) + "\n")


def table(tried: Tried) -> list[str]:
    """For docs/proof.md."""
    lines = [
        f"| Bug that was put back | Queue | Found by seed | By how many of {COUNTED} | It says |",
        "|---|---|---|---|---|",
    ]
    for one in tried.bugs:
        first = f"**none of {one.tried:,}**" if one.first is None else f"{one.first:,}"
        says = one.says.replace("|", " ")
        lines.append(f"| {one.bug} | {one.queue} | {first} | {one.hits} | {says} |")
    return lines
