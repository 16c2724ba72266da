"""Which plots the proof has, and the results each is drawn from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import plots
from benchmarks.kept import Section
from benchmarks.report import AtMost, Figure, Result

Sections = Mapping[str, Section]
QUEUES = {"redis": "Redis or Valkey", "postgres": "PostgreSQL"}


@dataclass(slots=True, frozen=True)
class Picture:
    name: str
    title: str
    sections: tuple[str, ...]
    """The benchmarks it is drawn from. It is not drawn while one is missing."""
    drawn: Callable[[Sections], str | None]
    remark: str = ""

    def draw(self, sections: Sections) -> str | None:
        if any(name not in sections for name in self.sections):
            return None
        return self.drawn(sections)


def _find(section: Section, what: str) -> Result:
    return next(one for one in section.results if re.fullmatch(what, one.what))


def _row(figure: Figure, remark: str = "") -> tuple[str, float, str]:
    return figure.who, figure.value, remark


def _throughput(sections: Sections) -> str:
    synced, loose = sections["jobs"].results[:2]
    figures = [synced.ours, synced.peer, loose.peer]
    groups = {"SQLite": [_row(figure) for figure in figures if figure is not None]}
    for name, title in QUEUES.items():
        groups[title] = _beside(_find(sections[name], "no-op jobs"))
    return plots.bars("No-op jobs a second, one worker process", "jobs/s", groups)


def _beside(result: Result, late: Result | None = None) -> list[tuple[str, float, str]]:
    """Ours, then the peers as they were measured; `late` holds the p99 of the same."""
    rows: list[tuple[str, float, str]] = []
    for name, cell in {"penstock": result.ours, **result.peers}.items():
        if isinstance(cell, Figure):
            slow = None if late is None else late.ours if name == "penstock" else late.peers[name]
            remark = f" (p99 {slow.value:.3g})" if isinstance(slow, Figure) else ""
            rows.append((name, cell.value, remark))
    return rows


def _latency(sections: Sections) -> str:
    rows: list[tuple[str, float, str]] = []
    fast = [one for one in sections["latency"].results if one.what.startswith("p50, ")]
    slow = [one for one in sections["latency"].results if one.what.startswith("p99, ")]
    for half, late in zip(fast, slow, strict=True):
        if "another process" in half.what:
            pairs = [(half.ours, late.ours), (half.peer, late.peer)]
            for figure, tail in pairs[1:] if rows else pairs:
                if figure is not None and tail is not None:
                    rows.append(_row(figure, f" (p99 {tail.value:.3g})"))
    groups = {"SQLite": rows}
    for name, title in QUEUES.items():
        found = [
            _find(sections[name], f"enqueue to handler start, idle, p{part}") for part in (50, 99)
        ]
        groups[title] = _beside(*found)
    title = "From enqueue to the handler's start on an idle worker, p50"
    return plots.bars(title, "ms", groups)


def _outage(sections: Sections) -> str | None:
    series = dict(sections["outage_course"].results[0].series)
    if not series:
        return None
    (gone, _), (back, _) = series.pop("away")
    return plots.lines(
        "A service goes away and comes back",
        "seconds",
        "jobs done a second",
        series,
        shade=(gone, back, "the service is away"),
    )


def _lane(sections: Sections) -> str | None:
    result = next((one for one in sections["lane_use"].results if one.series), None)
    if result is None or not isinstance(result.target, AtMost):
        return None
    [(rate, points)] = result.series.items()
    return plots.lines(
        f"A lane of {rate}, four worker processes",
        "seconds; a window begins with each request",
        "requests in the window that begins here, seen at the service",
        {"requests in a window": points},
        limit=result.target.value,
    )


def _memory(sections: Sections) -> str | None:
    series = _find(sections["ingest_pdfs"], "memory with.*").series
    if not series:
        return None
    return plots.lines(
        "Memory while PDFs of 10 pages are made searchable",
        "documents searchable",
        "MB of all processes",
        series,
    )


PICTURES = (
    Picture("throughput", "Throughput beside the peers", ("jobs", "redis", "postgres"), _throughput,
            "Each group has a scale of its own. All with fsync, but for the one that says so."),
    Picture("latency", "Latency beside the peers", ("latency", "redis", "postgres"), _latency),
    Picture("outage", "An outage and its recovery", ("outage_course",), _outage,
            "No attempt is spent on it, and the other lane does not notice."),
    Picture("lane", "A lane under four processes", ("lane_use",), _lane),
    Picture("memory", "Memory against documents", ("ingest_pdfs",), _memory,
            "What grows at first is what is loaded once."),
)  # fmt: skip
