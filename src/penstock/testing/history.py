"""The history of a simulation, in lines that a person reads."""

from __future__ import annotations

import json
from collections.abc import Iterable

from penstock.testing.model import JobChange


def told(lines: Iterable[tuple[float, str]], changes: Iterable[JobChange]) -> str:
    """What happened beside the jobs, and what became of these."""
    found = [*lines, *((change.at, _line(change)) for change in changes if change.before)]
    found.sort(key=lambda line: line[0])
    return "\n".join(f"{at:10.4f}  {text}" for at, text in found)


def _line(change: JobChange) -> str:
    row = change.row
    text = f"{row.kind} {row.id[-6:]} {change.before} -> {row.state}"
    text += f" (token {row.token}, attempts {row.attempts}"
    text += f", process {row.holder})" if row.holder else ")"
    if row.state == "completed" and row.result:
        text += f" {json.loads(row.result)!r}"[:80]
    return text
