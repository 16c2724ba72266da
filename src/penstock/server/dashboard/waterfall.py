"""The steps, waits, receipts and events of a job as rows, with bars on the scale of its time."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from penstock.model.job import Job
from penstock.model.payload import read_json
from penstock.model.redact import hidden
from penstock.model.step import Step
from penstock.ports.steps import EVENT_NAME, StepRow, is_internal, is_sleep, large_result, shown
from penstock.server.dashboard.filters import as_json

ROWS = 200
WIDTH = 1000
LEAST = 6
"""Minimum width of a bar, on the scale of WIDTH."""
READ = 16 * 1024
"""Maximum characters of a result that is parsed: every update of the page does so."""
RESULT_SHOWN = 2000
"""Maximum characters of a result shown."""
PREVIEW = 60
"""Characters of an event in place of a name."""


@dataclass(slots=True, frozen=True)
class WaterfallRow:
    key: str
    kind: str
    """step, wait, receipt or event."""
    name: str
    step: Step
    """Without its result."""
    at: float
    wide: float
    seconds: float | None
    """None: it is not known."""
    until: float | None
    """Of a sleep, and of a wait for a signal that is under way: when it ends."""
    taken_over: bool
    """From the job that this one repeats."""
    parameters: Markup | None
    """Of a receipt."""
    result: Markup | None
    unread: int | None
    """Characters of a result that is too long to be shown."""


@dataclass(slots=True, frozen=True)
class Waterfall:
    rows: list[WaterfallRow]
    more: int
    """How many are left out."""
    seconds: float
    """What the bars are parts of: from the first run to the end, or to now."""
    names: list[str]
    """Those that a rerun can begin from."""


@dataclass(slots=True, frozen=True)
class _Part:
    row: StepRow
    step: Step
    begun: float
    ended: float | None
    until: float | None
    taken_over: bool


def waterfall(rows: Sequence[StepRow], job: Job, names: Collection[str], now: float) -> Waterfall:
    """The rows of a job in the order in which they began; `names` are hidden in results."""
    parts = sorted(_parts(rows, job), key=lambda part: part.begun)
    first, last = _scale(parts, job, now)
    drawn = [_drawn(part, job, first, last, names) for part in parts[:ROWS]]
    offered = (part.step.name for part in parts if _is_offered(part))
    return Waterfall(
        drawn, len(parts) - len(drawn), last - first, list(dict.fromkeys(offered))[:ROWS]
    )


def _parts(rows: Sequence[StepRow], job: Job) -> list[_Part]:
    """The ends of waits for signals are told with their waits, of which they have the begin."""
    steps = [(row, shown(row._replace(result=None))) for row in rows]
    ends = {
        (step.name.removesuffix(":until"), step.occurrence): (row, step)
        for row, step in steps
        if is_internal(step)
    }
    parts = []
    for row, step in steps:
        if is_internal(step):
            continue
        begun, until = step.started_at, None
        if step.kind == "wait" and is_sleep(step):
            until = float(row.result or begun)
        elif step.kind == "wait" and (end := ends.pop((step.name, step.occurrence), None)):
            begun = end[1].started_at
        parts.append(_Part(row, step, begun, step.finished_at, until, _is_older(step, job)))
    for (name, _), (row, step) in ends.items():
        open_ = shown(row._replace(name=name, finished_at=None, result=None))
        until = float(row.result or step.started_at)
        parts.append(_Part(row, open_, step.started_at, None, until, _is_older(step, job)))
    return parts


def _is_older(step: Step, job: Job) -> bool:
    return job.rerun_of is not None and (step.finished_at or job.enqueued_at) < job.enqueued_at


def _is_offered(part: _Part) -> bool:
    step = part.step
    return step.recorded and step.kind in ("step", "wait") and step.name != EVENT_NAME


def _scale(parts: Sequence[_Part], job: Job, now: float) -> tuple[float, float]:
    begun = [part.begun for part in parts if not part.taken_over]
    begun += [at for record in job.history if (at := record.get("started_at")) is not None]
    begun += [] if job.started_at is None else [job.started_at]
    last = job.finished_at if job.state.finished and job.finished_at is not None else now
    ended = [part.ended for part in parts if part.ended is not None]
    return min(begun, default=last), max([last, *ended])


def _drawn(
    part: _Part, job: Job, first: float, last: float, names: Collection[str]
) -> WaterfallRow:
    step, ended = part.step, part.ended
    if part.until is not None and (step.recorded or not job.state.finished):
        ended = min(part.until, last)
    elif ended is None and not job.state.finished:
        ended = last
    scale = WIDTH / ((last - first) or 1.0)
    at = min(max(0.0, (part.begun - first) * scale), WIDTH - LEAST)
    wide = 0.0 if ended is None else (ended - max(part.begun, first)) * scale
    name, result, unread = _result(part, names)
    told = step.receipt and step.receipt.parameters
    return WaterfallRow(
        key=part.row.key,
        kind="event" if step.name == EVENT_NAME else step.kind,
        name=name,
        step=step,
        at=round(at, 1),
        wide=round(min(max(LEAST, wide), WIDTH - at), 1),
        seconds=_seconds(part, ended),
        until=part.until,
        taken_over=part.taken_over,
        parameters=as_json(hidden(told, names), RESULT_SHOWN) if told else None,
        result=result,
        unread=unread,
    )


def _seconds(part: _Part, ended: float | None) -> float | None:
    """Of a wait for a signal without a timeout only the end is recorded."""
    step = part.step
    if step.receipt is not None and step.receipt.seconds is not None:
        return step.receipt.seconds
    unknown = step.kind == "wait" and part.until is None and part.begun == step.started_at
    if ended is None or unknown or step.name == EVENT_NAME:
        return None
    return max(0.0, ended - part.begun)


def _result(part: _Part, names: Collection[str]) -> tuple[str, Markup | None, int | None]:
    """The name of a row, and its result, or how long that is."""
    step, text = part.step, part.row.result
    name = step.name + (f" #{step.occurrence}" if step.occurrence > 1 else "")
    is_event = step.name == EVENT_NAME
    if text is None or part.until is not None:
        return name, None, None
    if (large := large_result(text)) is not None:
        return name, None, large.size
    if len(text) > READ:
        return "emitted" if is_event else name, None, len(text)
    value = hidden(read_json(text), names)
    if is_event:
        name = json.dumps(value, ensure_ascii=False)
        name = name if len(name) <= PREVIEW else f"{name[:PREVIEW]}..."
    return name, as_json(value, RESULT_SHOWN), None
