"""How results are written down: Markdown to keep, a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.kept import Section
from benchmarks.report import Cell, Figure, Result, Verdict

COLUMNS = ("what", "penstock", "peer", "ratio", "target", "")
OWN = ("date", "load when started", "fsync of 4 KiB", "commit")
"""Facts that are each section's own."""
ABSENT = "not installed"


@dataclass(slots=True, frozen=True)
class Report:
    """Sections, each as it was measured. It fails when a target is missed or not measured."""

    sections: Sequence[Section]

    @property
    def results(self) -> list[Result]:
        return [result for section in self.sections for result in section.results]

    @property
    def exit_code(self) -> int:
        return 0 if all(result.good for result in self.results) else 1

    def write(self, folder: Path) -> None:
        (folder / "REPORT.md").write_text(self.markdown())

    def markdown(self) -> str:
        lines = [
            "# Report of the benchmarks",
            "",
            "Written by `python -m benchmarks`. Every figure is the median of several, with the",
            "least and the most in brackets, contenders taking turns. The ratio says how many",
            "times as good as the peer we are. Under each heading: when it was measured, of which",
            "commit, and how busy the machine was.",
            "",
            f"**{tally([result.verdict for result in self.results])}**",
            "",
            *machine_table(self.sections),
        ]
        for section in self.sections:
            for benchmark, results in groupby(section.results, lambda result: result.benchmark):
                lines += ["", f"## {benchmark}", "", f"{section.when}.", ""]
                lines += _table(list(results))
        return "\n".join(lines) + "\n"

    def print(self, console: Console) -> None:
        table = Table(title="Benchmarks")
        for column in COLUMNS:
            table.add_column(column)
        for result in self.results:
            told = [f"{result.benchmark}: {result.what}", *cells(result), result.verdict.value]
            table.add_row(*told, style=None if result.good else "bold red")
        console.print(table)


def tally(verdicts: Sequence[Verdict]) -> str:
    return (
        f"{verdicts.count(Verdict.MET)} targets met, {verdicts.count(Verdict.MISSED)} missed, "
        f"{verdicts.count(Verdict.NOT_MEASURED)} not measured."
    )


def machine_table(sections: Sequence[Section]) -> list[str]:
    """What the sections have in common; where they differ, each value there was."""
    names = dict.fromkeys(name for section in sections for name in section.machine)
    lines = ["| machine | |", "|---|---|"]
    for name in names:
        if name not in OWN:
            seen = dict.fromkeys(section.machine.get(name, ABSENT) for section in sections)
            values = [value for value in seen if value != ABSENT] or [ABSENT]
            lines.append(f"| {name} | {', '.join(values)} |")
    return lines


def _table(results: list[Result]) -> list[str]:
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
            told = [figure_text(result.ours), *peers, *comparison(result)]
        else:
            what, told = result.what, cells(result)
        lines.append(_row([what + _reference(result, notes), *told, mark]))
    return [*lines, *_footnotes(notes)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def cells(result: Result) -> list[str]:
    peer = f"{figure_text(result.peer, result.unit)} ({result.peer.who})" if result.peer else "-"
    return [figure_text(result.ours, result.unit), peer, *comparison(result)]


def comparison(result: Result) -> list[str]:
    ratio = "-" if result.ratio is None else f"{result.ratio:.3g}x"
    if result.peers and result.peer and result.ratio is not None:
        ratio += f" {result.peer.who}"
    return [ratio, str(result.target) if result.target else "-"]


def _cell(cell: Cell | None) -> str:
    return cell if isinstance(cell, str) else figure_text(cell)


def figure_text(figure: Figure | None, unit: str = "") -> str:
    if figure is None or math.isnan(figure.value):  # nan: a peer that was left out
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
