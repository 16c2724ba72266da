"""How results are written down: Markdown to keep, JSON for programs, a table for the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.report import Cell, Figure, Result, Verdict

COLUMNS = ("what", "penstock", "peer", "ratio", "target", "")


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
        for benchmark, results in groupby(self.results, lambda result: result.benchmark):
            lines += ["", f"## {benchmark}", "", *_section(list(results))]
        return "\n".join(lines) + "\n"

    def print(self, console: Console) -> None:
        table = Table(title=f"Benchmarks ({self.sizes} sizes)")
        for column in COLUMNS:
            table.add_column(column)
        for result in self.results:
            cells = [f"{result.benchmark}: {result.what}", *_cells(result), result.verdict.value]
            table.add_row(*cells, style=None if result.good else "bold red")
        console.print(table)


def _section(results: list[Result]) -> list[str]:
    """A table and its notes. Several peers have a column each, and units go to the first."""
    names = list(dict.fromkeys(name for result in results for name in result.peers))
    columns = ["what", "penstock", *names, *COLUMNS[3:]] if names else list(COLUMNS)
    lines = [_row(columns), _row(["---"] * len(columns))]
    notes: list[str] = []
    for result in results:
        mark = f"**{result.verdict.value}**" if not result.good else result.verdict.value
        if names:
            what = f"{result.what}, {result.unit}" if result.unit else result.what
            peers = [_cell(result.peers.get(name)) for name in names]
            cells = [_figure(result.ours), *peers, *_comparison(result)]
        else:
            what, cells = result.what, _cells(result)
        lines.append(_row([what + _reference(result, notes), *cells, mark]))
    return [*lines, *_footnotes(notes)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(result: Result) -> list[str]:
    peer = f"{_figure(result.peer, result.unit)} ({result.peer.who})" if result.peer else "-"
    return [_figure(result.ours, result.unit), peer, *_comparison(result)]


def _comparison(result: Result) -> list[str]:
    ratio = "-" if result.ratio is None else f"{result.ratio:.3g}x"
    if result.peers and result.peer and result.ratio is not None:
        ratio += f" {result.peer.who}"
    return [ratio, str(result.target) if result.target else "-"]


def _cell(cell: Cell | None) -> str:
    return cell if isinstance(cell, str) else _figure(cell)


def _figure(figure: Figure | None, unit: str = "") -> str:
    if figure is None:
        return "-"
    text = f"{_number(figure.value)} {unit}".rstrip()
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
    lines = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
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
        "peers": {
            name: cell if isinstance(cell, str) else _figure_data(cell)
            for name, cell in result.peers.items()
        },
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
