"""Writes the README's three figures from results.json, between two marks in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.kept import Section
from benchmarks.report import Figure
from benchmarks.targets import Answer

START, END = "<!-- figures: python -m benchmarks.proof -->", "<!-- end of figures -->"
ROWS = (
    ("No-op jobs/s on SQLite, results stored, fsync on", Answer("jobs", "every feature on.*")),
    ("No-op jobs/s on PostgreSQL", Answer("postgres", "no-op jobs")),
    (
        "All work finished after `kill -9` and a restart, PostgreSQL",
        Answer("postgres", "after SIGKILL and a restart: all done"),
    ),
)


def filled(readme: str, sections: Mapping[str, Section]) -> str:
    """The README with the figures as they were last measured."""
    table = ["| Measured | Penstock | Best peer |", "|---|---|---|"]
    table += [f"| {label} | {_cells(answer, sections)} |" for label, answer in ROWS]
    written = "\n".join([START, *table, END])
    return re.sub(f"{re.escape(START)}.*{re.escape(END)}", lambda _: written, readme, flags=re.S)


def _cells(answer: Answer, sections: Mapping[str, Section]) -> str:
    found = answer.found(sections)
    if not found or found[0].ours is None or found[0].peer is None:
        return "**not measured** | -"
    result, peer = found[0], found[0].peer
    ours = _value(found[0].ours, result.unit)
    return f"**{ours}** | {_value(peer, result.unit)} ({peer.who.partition(',')[0]})"


def _value(figure: Figure, unit: str) -> str:
    value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.2g}"
    return value if unit == "jobs/s" else f"{value} {unit}"
