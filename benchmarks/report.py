"""What was measured, whether it meets its target, and how that is written down."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(slots=True, frozen=True)
class Figure:
    """One contender's figure: the median of its runs, and the least and the most of them."""

    who: str
    value: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, who: str, values: Sequence[float]) -> Figure:
        return cls(who, statistics.median(values), min(values), max(values), len(values))


class Better(Enum):
    MORE = "more"
    LESS = "less"


@dataclass(slots=True, frozen=True)
class TimesThePeer:
    """At least this many times as good as the peer."""

    factor: float

    def __str__(self) -> str:
        return f">= {self.factor:g}x the peer"


@dataclass(slots=True, frozen=True)
class AtMost:
    value: float
    unit: str

    def __str__(self) -> str:
        return f"<= {self.value:g} {self.unit}"


@dataclass(slots=True, frozen=True)
class AtLeast:
    value: float
    unit: str

    def __str__(self) -> str:
        return f">= {self.value:g} {self.unit}"


Target = TimesThePeer | AtMost | AtLeast


class Verdict(Enum):
    MET = "met"
    MISSED = "MISSED"
    NOT_MEASURED = "NOT MEASURED"
    NO_TARGET = "-"


@dataclass(slots=True, frozen=True)
class Result:
    """One line of the report."""

    benchmark: str
    what: str
    unit: str
    ours: Figure | None
    peer: Figure | None = None
    better: Better = Better.MORE
    target: Target | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as good as the peer we are; None without a peer, or with a zero."""
        if self.ours is None or self.peer is None:
            return None
        ours, peer = self.ours.value, self.peer.value
        if self.better is Better.LESS:
            ours, peer = peer, ours
        return ours / peer if peer else None

    @property
    def verdict(self) -> Verdict:
        if self.ours is None:
            return Verdict.NOT_MEASURED
        match self.target:
            case None:
                return Verdict.NO_TARGET
            case TimesThePeer(factor):
                if self.ratio is None:
                    return Verdict.NOT_MEASURED
                return Verdict.MET if self.ratio >= factor else Verdict.MISSED
            case AtMost(value):
                return Verdict.MET if self.ours.value <= value else Verdict.MISSED
            case AtLeast(value):
                return Verdict.MET if self.ours.value >= value else Verdict.MISSED

    @property
    def good(self) -> bool:
        return self.verdict in (Verdict.MET, Verdict.NO_TARGET)


@dataclass(slots=True, frozen=True)
class Report:
    """All results of one run. It fails when a target is missed or could not be measured."""

    machine: Mapping[str, str]
    sizes: str
    results: Sequence[Result]

    @property
    def exit_code(self) -> int:
        return 0 if all(result.good for result in self.results) else 1

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "REPORT.md").write_text(self.markdown())
        (folder / "results.json").write_text(json.dumps(self.data(), indent=2) + "\n")

    def data(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "sizes": self.sizes,
            "results": [_data(result) for result in self.results],
        }

    def markdown(self) -> str:
        verdicts = [result.verdict for result in self.results]
        lines = [
            "# Benchmarks",
            "",
            f"Written by `python -m benchmarks` ({self.sizes} sizes). Every figure was measured in",
            "this run: the median of several, with the least and the most in brackets, contenders",
            "taking turns. The ratio says how many times as good as the peer we are.",
            "",
            f"**{verdicts.count(Verdict.MET)} targets met, "
            f"{verdicts.count(Verdict.MISSED)} missed, "
            f"{verdicts.count(Verdict.NOT_MEASURED)} not measured.**",
            "",
            "| machine | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in self.machine.items()),
        ]
        heading = "| what | penstock | peer | ratio | target | |\n|---|---|---|---|---|---|"
        benchmark = None
        notes: list[str] = []
        for result in self.results:
            if result.benchmark != benchmark:
                lines += [*_footnotes(notes), "", f"## {result.benchmark}", "", heading]
                benchmark = result.benchmark
            mark = f"**{result.verdict.value}**" if not result.good else result.verdict.value
            cells = [result.what + _reference(result, notes), *_cells(result), mark]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join([*lines, *_footnotes(notes)]) + "\n"

    def print(self, console: Console) -> None:
        table = Table(title=f"Benchmarks ({self.sizes} sizes)")
        for column in ("what", "penstock", "peer", "ratio", "target", ""):
            table.add_column(column)
        for result in self.results:
            cells = [f"{result.benchmark}: {result.what}", *_cells(result), result.verdict.value]
            table.add_row(*cells, style=None if result.good else "bold red")
        console.print(table)


def _cells(result: Result) -> list[str]:
    ratio = result.ratio
    return [
        _figure(result.ours, result.unit),
        f"{_figure(result.peer, result.unit)} ({result.peer.who})" if result.peer else "-",
        "-" if ratio is None else f"{ratio:.3g}x",
        str(result.target) if result.target else "-",
    ]


def _figure(figure: Figure | None, unit: str) -> str:
    if figure is None:
        return "-"
    text = f"{_number(figure.value)} {unit}"
    if figure.runs > 1:
        text += f" [{_number(figure.low)} .. {_number(figure.high)}]"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _reference(result: Result, notes: list[str]) -> str:
    """A footnote mark for the result's note; equal notes share one."""
    if not result.note:
        return ""
    if result.note not in notes:
        notes.append(result.note)
    return f" ({notes.index(result.note) + 1})"


def _footnotes(notes: list[str]) -> list[str]:
    """The notes gathered since the last heading, which are then forgotten."""
    lines = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    notes.clear()
    return ["", *lines] if lines else []


def _data(result: Result) -> dict[str, Any]:
    return {
        "benchmark": result.benchmark,
        "what": result.what,
        "unit": result.unit,
        "ours": _figure_data(result.ours),
        "peer": _figure_data(result.peer),
        "ratio": result.ratio,
        "target": None if result.target is None else str(result.target),
        "verdict": result.verdict.value,
        "note": result.note,
    }


def _figure_data(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {
        "who": figure.who,
        "median": figure.value,
        "low": figure.low,
        "high": figure.high,
        "runs": figure.runs,
    }
