"""What `make chaos` counted of jobs with steps, kept as JSON: a course on each queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parent / "step_chaos.json"


@dataclass(slots=True, frozen=True)
class Course:
    """Jobs with steps, while their processes were killed and frozen; and what it came to."""

    seed: int
    faults: Mapping[str, int]
    """How often what was done."""
    jobs: int
    runs: int
    """Begun: a job begins again after each sleep, wait, kill and failure."""
    records: int
    """Of steps; each tells the call it came from."""
    signals: int
    """Sent twice each, with a key, and accepted."""
    calls: int
    """Of functions of steps."""
    late_calls: int
    """Begun by a holder that had lost the job and did not know it yet. It could not record them."""
    lost: int = 0
    """Jobs that did not complete with a result made of their records."""
    again: int = 0
    """Calls of a step that was recorded already, by a holder of the job."""
    stale: int = 0
    """Records that are no call of their holder, or were accepted after another had the job."""
    changed: int = 0
    """Records that were once seen otherwise."""
    unseen: int = 0
    """Signals that were not taken exactly once, or that two runs saw differently."""

    @property
    def faultless(self) -> bool:
        return (self.lost, self.again, self.stale, self.changed, self.unseen) == (0, 0, 0, 0, 0)


@dataclass(slots=True, frozen=True)
class Counted:
    """A course, and the machine it was run on."""

    machine: Mapping[str, str]
    course: Course

    def of(self, facts: Mapping[str, str]) -> bool:
        """Whether it was counted at the same commit."""
        return "commit" in facts and self.machine.get("commit") == facts["commit"]


def read(file: Path = FILE) -> dict[str, Counted]:
    """By queue."""
    if not file.exists():
        return {}
    return {
        queue: Counted(data["machine"], Course(**data["course"]))
        for queue, data in json.loads(file.read_text()).items()
    }


def keep(queue: str, counted: Counted, file: Path = FILE) -> None:
    """In place of what was counted on this queue before; the others stay."""
    every = read(file) | {queue: counted}
    data = {name: asdict(one) for name, one in sorted(every.items())}
    file.write_text(json.dumps(data, indent=1) + "\n")
