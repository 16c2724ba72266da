"""Displays a job: a line in a list, or all its details."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from penstock.cli.output import (
    Looks,
    age,
    duration,
    moment,
    pretty,
    print_fields,
    print_table,
    printable,
    problem,
    say,
)
from penstock.model.job import Job, JobState
from penstock.ports.steps import waits_for_signal

PRIVATE = ("payload", "result", "history", "lines")
"""Fields left out of lists: they are large, and may be confidential."""


def summary(job: Job) -> dict[str, Any]:
    """Convert a job for programs, in lists and watches."""
    return {name: value for name, value in job.as_dict().items() if name not in PRIVATE}


def about(job: Job) -> str:
    """Summarize a job, depending on its state."""
    match job.state:
        case JobState.QUEUED:
            away = job.run_at - time.time()
            timed = away > 0 and not waits_for_signal(job)
            waiting = f"due in {duration(away)}" if timed else f"waits for {job.waiting_for}"
            last = problem(job.error) or job.message
            return printable(f"{waiting}; {last}" if last else waiting)
        case JobState.RUNNING:
            return printable(f"{job.progress:.0%} {job.message}".strip() if job.progress else "")
        case JobState.FAILED:
            return problem(job.error)
        case JobState.COMPLETED if job.started_at and job.finished_at:
            return f"took {duration(job.finished_at - job.started_at)}"
        case _:
            return ""


def print_jobs(jobs: Sequence[Job]) -> None:
    """Print a table of jobs; empty columns are left out."""
    tenants = any(job.tenant != "default" for job in jobs)
    rows = [
        {
            "id": job.id,
            "kind": job.kind,
            "state": str(job.state),
            **({"tenant": printable(job.tenant)} if tenants else {}),
            "runs": str(job.attempts),
            "age": age(job.enqueued_at),
            "about": about(job),
        }
        for job in jobs
    ]
    print_table(rows, Looks(right=["runs", "age"], cut=["about"]))


def print_job(job: Job) -> None:
    """Print all details of a job, including payload and result."""
    runs = "" if job.max_retries is None else f" of {job.max_retries + 1}"
    waits = job.state is JobState.QUEUED and job.run_at > job.enqueued_at
    waits = waits and not waits_for_signal(job)
    print_fields(
        {
            "id": job.id,
            "kind": job.kind,
            "state": str(job.state),
            "waiting for": printable(job.waiting_for or ""),
            "tenant": printable(job.tenant),
            "priority": job.priority.name.lower(),
            "lane": printable(job.lane or ""),
            "key": printable(job.key or ""),
            "log": printable(job.log or ""),
            "parent": job.parent_id or "",
            "rerun of": job.rerun_of or "",
            "runs": f"{job.attempts}{runs}",
            "releases": str(job.releases or ""),
            "timeout": "" if job.timeout is None else f"{job.timeout:g} s",
            "enqueued": moment(job.enqueued_at),
            "scheduled": moment(job.run_at) if waits else "",
            "deadline": moment(job.deadline) if job.deadline else "",
            "started": moment(job.started_at) if job.started_at else "",
            "finished": moment(job.finished_at) if job.finished_at else "",
            "progress": printable(f"{job.progress:.0%} {job.message}") if job.progress else "",
            "payload": pretty(job.payload),
            "result": pretty(job.result) if job.state is JobState.COMPLETED else "",
            "error": problem(job.error, places=True),
            "response": _response(job.error),
        }
    )
    if job.history:
        _print_history(job)
    if job.lines:
        _print_logs(job)


def _response(error: dict[str, Any] | None) -> str:
    """Format the HTTP response that a job failed with, if any."""
    told = (error or {}).get("response")
    if told is None:
        return ""
    return printable(f"HTTP {told['status']} from {told['url']}: {told['body']}")


def _print_logs(job: Job) -> None:
    say("\nlog:")
    for line in job.lines:
        at = time.strftime("%H:%M:%S", time.localtime(line.at)) + f"{line.at % 1:.3f}"[1:]
        say(printable(f"{at}  run {line.attempt}  {line.level:<7}  {line.message}"))


def _print_history(job: Job) -> None:
    rows = []
    for record in job.history:
        begun, ended = record.get("started_at"), record["finished_at"]
        rows.append(
            {
                "run": str(record.get("attempt") or ""),
                "outcome": record["outcome"],
                "ended": moment(ended),
                "took": duration(ended - begun) if begun else "",
                "error": problem(record.get("error"), places=True),
            }
        )
    say()
    print_table(rows, Looks(right=["run"], fold=["error"]))
    if trace := job.history[-1].get("traceback"):
        say("\ntraceback of the last attempt:")
        for line in trace.rstrip().split("\n"):
            say(printable(line))
