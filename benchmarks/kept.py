"""What was measured, kept as JSON: a section for each benchmark, with its machine, commit and load.

A run replaces the sections it measures and leaves the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Better, Cell, Figure, Result, Verdict, parse_target

FILE = "results.json"


@dataclass(slots=True, frozen=True)
class Section:
    """One benchmark, measured once."""

    name: str
    sizes: str
    machine: Mapping[str, str]
    results: list[Result]

    @property
    def when(self) -> str:
        """What tells how far to trust it: a quick look on a busy machine is not a measurement."""
        facts = self.machine
        return (
            f"{self.sizes} sizes, {facts['date']}, commit {facts.get('commit', 'unknown')}, "
            f"load {facts['load when started']}"
        )

    @property
    def measured(self) -> bool:
        return all(result.verdict is not Verdict.NOT_MEASURED for result in self.results)


def read(folder: Path) -> dict[str, Section]:
    """The sections that are kept there, by name."""
    file = folder / FILE
    if not file.exists():
        return {}
    return {name: _section(name, data) for name, data in json.loads(file.read_text()).items()}


def write(folder: Path, sections: Iterable[Section]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        section.name: {
            "sizes": section.sizes,
            "machine": dict(section.machine),
            "results": [_result_data(result) for result in section.results],
        }
        for section in sections
    }
    (folder / FILE).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _section(name: str, data: Mapping[str, Any]) -> Section:
    return Section(
        name, data["sizes"], data["machine"], [_result(result) for result in data["results"]]
    )


def _result_data(result: Result) -> dict[str, Any]:
    """What is empty is left out; the ratio and the verdict are there for other programs."""
    data = {
        "benchmark": result.benchmark,
        "what": result.what,
        "unit": result.unit,
        "ours": _figure_data(result.ours),
        "peer": _figure_data(result.peer),
        "better": result.better.value,
        "ratio": result.ratio,
        "target": None if result.target is None else str(result.target),
        "verdict": result.verdict.value,
        "note": result.note,
        "peers": {name: _cell_data(cell) for name, cell in result.peers.items()},
        "series": {
            name: [[round(x, 3), round(y, 3)] for x, y in points]
            for name, points in result.series.items()
        },
    }
    return {key: value for key, value in data.items() if value not in (None, "", {})}


def _result(data: Mapping[str, Any]) -> Result:
    return Result(
        benchmark=data["benchmark"],
        what=data["what"],
        unit=data.get("unit", ""),
        ours=_figure(data.get("ours")),
        peer=_figure(data.get("peer")),
        better=Better(data["better"]),
        target=parse_target(data["target"]) if "target" in data else None,
        note=data.get("note", ""),
        peers={name: _cell(cell) for name, cell in data.get("peers", {}).items()},
        series={
            name: [(x, y) for x, y in points] for name, points in data.get("series", {}).items()
        },
    )


def _cell_data(cell: Cell) -> Any:
    return cell if isinstance(cell, str) else _figure_data(cell)


def _cell(data: Any) -> Cell:
    if isinstance(data, str):
        return data
    figure = _figure(data)
    assert figure is not None
    return figure


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


def _figure(data: Mapping[str, Any] | None) -> Figure | None:
    if data is None:
        return None
    return Figure(data["who"], data["median"], data["low"], data["high"], data["runs"])
