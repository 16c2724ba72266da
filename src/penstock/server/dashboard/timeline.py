"""A job's timeline: waits and attempts, with durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.model.job import Job, JobState

WIDTH = 1000
LEAST = 4
"""Of WIDTH: a period that is shorter is drawn this wide."""


@dataclass(slots=True, frozen=True)
class Period:
    what: str
    """waited, or how the run ended: completed, retry, failed, lost, running ..."""
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


def periods(job: Job, now: float) -> list[Period]:
    """From its being enqueued to now, or to its end."""
    found: list[Period] = []
    at = job.enqueued_at

    def add(period: Period) -> None:
        nonlocal at
        if period.begun > at:
            found.append(Period("waited", at, period.begun))
        found.append(period)
        at = period.ended

    for record in job.history:
        ended = record["finished_at"]
        begun = record.get("started_at") or ended
        add(
            Period(
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
        add(Period("running", begun, now, job.attempts))
    elif job.state is JobState.COMPLETED and begun is not None:
        add(Period("completed", begun, job.finished_at or begun, job.attempts))
    elif not job.state.finished:
        found.append(Period("waited", at, now))
    elif job.state is JobState.CANCELLED and job.finished_at is not None:
        add(Period("cancelled", job.finished_at, job.finished_at))
    return found


def bars(found: list[Period]) -> list[tuple[str, float, float]]:
    """For the picture: what, where it begins and how wide it is, of WIDTH."""
    total = sum(period.seconds for period in found)
    if not total:
        return []
    drawn, at = [], 0.0
    for period in found:
        wide = WIDTH * period.seconds / total
        kind = "waited" if period.waited else period.what.replace(" ", "-")
        drawn.append((kind, round(min(at, WIDTH - LEAST), 1), round(max(LEAST, wide), 1)))
        at += wide
    return drawn
