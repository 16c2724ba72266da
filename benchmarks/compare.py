"""`python -m benchmarks.compare COMMIT`: this tree beside another commit, in one run.

Both take turns at every benchmark, with small sizes and without peers, several times; the medians
are compared. A figure has moved when it differs by more than 5 % and by more than its runs differ
among themselves. The exit code is 1 when one has become worse.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import kept
from benchmarks.report import Better, Figure, Result
from benchmarks.turns import ALONE

ROOT = Path(__file__).parents[1]
DEFAULT = ("jobs", "enqueue", "latency", "claim", "fencing", "lane_use", "waiters", "cli_help")
"""What runs in minutes and needs no server."""
LEAST = 0.05
"""A smaller difference is none."""

Key = tuple[str, str, str]
"""Names a figure: benchmark, what, unit."""


@dataclass(slots=True, frozen=True)
class Comparison:
    """One figure of both commits."""

    key: Key
    better: Better
    then: Figure
    now: Figure

    @property
    def change(self) -> float:
        """By how much it is better now: 0.1 is 10 % better, -0.1 is 10 % worse."""
        if self.then.value == 0 or self.now.value == 0:
            return 0.0 if self.then.value == self.now.value else float("nan")
        ratio = self.now.value / self.then.value
        return ratio - 1 if self.better is Better.MORE else 1 / ratio - 1

    @property
    def noise(self) -> float:
        """How far the runs of one commit are apart, relative to their median: the larger one."""
        return max(_spread(self.then), _spread(self.now))

    @property
    def moved(self) -> bool:
        # Not "> ... is moved": what cannot be compared (nan) is to be looked at, too.
        return not abs(self.change) <= max(LEAST, self.noise)

    @property
    def worse(self) -> bool:
        return self.moved and not self.change > 0


def _spread(figure: Figure) -> float:
    return (figure.high - figure.low) / figure.value if figure.value else 0.0


def compare(then: Sequence[Result], now: Sequence[Result]) -> list[Comparison]:
    """Every figure that both have, in the order of `now`; each result is one run of it."""
    before, after = _figures(then), _figures(now)
    better = {_key(result): result.better for result in now}
    return [
        Comparison(key, better[key], before[key], figure)
        for key, figure in after.items()
        if key in before
    ]


def _figures(results: Sequence[Result]) -> dict[Key, Figure]:
    values: dict[Key, list[float]] = {}
    for result in results:
        if result.ours is not None:
            values.setdefault(_key(result), []).append(result.ours.value)
    return {key: Figure.of(key[1], some) for key, some in values.items()}


def _key(result: Result) -> Key:
    return (result.benchmark, result.what, result.unit)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("commit", help="a commit, branch or tag to compare this tree with")
    parser.add_argument("--only", action="append", metavar="NAME", help="one benchmark; repeatable")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each commit (3)")
    parser.add_argument("--size", default="quick", choices=["quick", "full", "tiny"])
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    then: list[Result] = []
    now: list[Result] = []
    with checked_out(options.commit) as tree, tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for name in options.only or DEFAULT:
                sides = [(tree, then), (ROOT, now)]
                for place, results in sides if number % 2 == 0 else sides[::-1]:
                    console.print(f"round {number + 1}, {name}, {_side(place)} ...")
                    output = Path(folder) / f"{number}-{name}-{_side(place)}"
                    results += measured(place, name, options.size, output)
    comparisons = compare(then, now)
    width = None if sys.stdout.isatty() else 140
    Console(width=width).print(table_of(comparisons, options.commit))
    return 1 if not comparisons or any(one.worse for one in comparisons) else 0


def _side(place: Path) -> str:
    return "now" if place == ROOT else "then"


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A tree of that commit, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="penstock-compare-") as folder:
        tree = Path(folder) / "tree"
        add = ["git", "worktree", "add", "--quiet", "--detach", str(tree), commit]
        if subprocess.run(add, cwd=ROOT).returncode:
            sys.exit(f"cannot check out {commit!r}: it must be a commit of this repository")
        try:
            yield tree
        finally:
            remove = ["git", "worktree", "remove", "--force", str(tree)]
            subprocess.run(remove, cwd=ROOT, check=True)


def measured(tree: Path, name: str, size: str, output: Path) -> list[Result]:
    """One run of a benchmark with the code of that tree, in this environment."""
    command = [sys.executable, "-m", "benchmarks", "--only", name, "--output", str(output)]
    if size != "full":
        command.append(f"--{size}")
    # A missed target says nothing here, so the exit code does not either.
    subprocess.run(command, cwd=tree, env=environment(tree), stdout=subprocess.DEVNULL)
    section = kept.read(output).get(name)
    if section is None:
        sys.exit(f"{name} could not be measured with the code of {_side(tree)}")
    return section.results


def environment(tree: Path) -> Mapping[str, str]:
    """Lets a process import that tree's code."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", ALONE: "1"}


def table_of(comparisons: Sequence[Comparison], commit: str) -> Table:
    """What moved first, then the rest."""
    table = Table(title=f"this tree beside {commit}")
    for column in ("figure", "then", "now", "change", "noise", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    for one in sorted(comparisons, key=lambda one: (not one.worse, not one.moved)):
        benchmark, what, unit = one.key
        verdict = "WORSE" if one.worse else "better" if one.moved else ""
        table.add_row(
            f"{benchmark}: {what}, {unit}",
            f"{one.then.value:.4g}",
            f"{one.now.value:.4g}",
            f"{one.change:+.1%}",
            f"{one.noise:.1%}",
            verdict,
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
