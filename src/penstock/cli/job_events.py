"""Prints the events of a job as they happen."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from penstock.cli.output import duration, print_json_line, printable, say
from penstock.model.event import JobEvent
from penstock.model.job import Job
from penstock.model.redact import hidden

if TYPE_CHECKING:
    from penstock.app import Penstock


async def print_events(app: Penstock, job_id: str, after: int | None, *, as_json: bool) -> Job:
    """Print the events after a position until the job ends; the job then."""
    names = app.config.logging.hidden_names
    async for event in app.follow(job_id, after=after):
        if as_json:
            print_json_line(event.as_dict())
        else:
            say(f"{event.position:<12} {event.kind:<8}  {_text(event, names)}".rstrip())
    return await app.get(job_id)


def _text(event: JobEvent, names: Collection[str]) -> str:
    data = event.data
    match event.kind:
        case "emitted":
            return _json(data, names)
        case "step" | "receipt":
            took = "" if data["seconds"] is None else f"  {duration(data['seconds'])}"
            count = f"#{data['occurrence']}" if data["occurrence"] > 1 else ""
            return printable(data["name"]) + count + took
        case "progress":
            return f"{data['fraction']:.0%}  {printable(data['message'])}"
        case "end":
            told = data["error"] or data["result"]
            return f"{data['state']}  {'' if told is None else _json(told, names)}"


def _json(value: Any, names: Collection[str]) -> str:
    return printable(json.dumps(hidden(value, names), ensure_ascii=False))
