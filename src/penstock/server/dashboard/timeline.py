"""A job's timeline: waits and attempts, with durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.model.job import Job, JobState

WIDTH = 1000
LEAST = 4
"""Minimum width of a step, on the scale of WIDTH."""


@dataclass(slots=True, frozen=True)
class Step:
    what: str
    """waited, or the outcome of the run: completed, retry, failed, lost, running ..."""
    begun: float
    ended: float
    attempt: int | None = None
    error: dict[str, Any] | None = None
    traceback: str | None = None
    process: str | None = None

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.begun)

    @property
    def waited(self) -> bool:
        return self.what == "waited"


def steps(job: Job, now: float) -> list[Step]:
    """Return the steps from enqueueing to now, or to the end."""
    found: list[Step] = []
    at = job.enqueued_at

    def add(step: Step) -> None:
        nonlocal at
        if step.begun > at:
            found.append(Step("waited", at, step.begun))
        found.append(step)
        at = step.ended

    for record in job.history:
        ended = record["finished_at"]
        begun = record.get("started_at") or ended
        add(
            Step(
                record["outcome"],
                begun,
                ended,
                record.get("attempt"),
                record.get("error"),
                record.get("traceback"),
                record.get("process"),
            )
        )
    begun = job.started_at
    if job.state is JobState.RUNNING and begun is not None and begun >= at:
        add(Step("running", begun, now, job.attempts))
    elif job.state is JobState.COMPLETED and begun is not None:
        add(Step("completed", begun, job.finished_at or begun, job.attempts))
    elif not job.state.finished:
        found.append(Step("waited", at, now))
    elif job.state is JobState.CANCELLED and job.finished_at is not None:
        add(Step("cancelled", job.finished_at, job.finished_at))
    return found


def bars(found: list[Step]) -> list[tuple[str, float, float]]:
    """Return the bars of the chart: kind, start and width, out of WIDTH."""
    total = sum(step.seconds for step in found)
    if not total:
        return []
    drawn, at = [], 0.0
    for step in found:
        wide = WIDTH * step.seconds / total
        kind = "waited" if step.waited else step.what.replace(" ", "-")
        drawn.append((kind, round(min(at, WIDTH - LEAST), 1), round(max(LEAST, wide), 1)))
        at += wide
    return drawn
