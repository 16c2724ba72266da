"""Displays a job: a line in a list, all its details, its steps, and its events as they happen."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.output import (
    Looks,
    age,
    duration,
    moment,
    pretty,
    print_fields,
    print_json_line,
    print_table,
    printable,
    problem,
    say,
)
from penstock.model.event import JobEvent
from penstock.model.job import Job, JobState
from penstock.model.redact import hidden
from penstock.model.step import Step
from penstock.ports.steps import is_internal, is_sleep, waits_for_signal

if TYPE_CHECKING:
    from penstock.app import Penstock

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
            "debounce key": printable(job.debounce_key or ""),
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


def print_steps(steps: Sequence[Step], names: Collection[str]) -> None:
    """A table of steps in the order in which they were begun; `names` are hidden in results."""
    say()
    if not steps:
        say("no steps")
        return
    steps = [step for step in steps if not is_internal(step)]
    begun = min((step.started_at for step in steps), default=0.0)
    rows = [
        {
            "step": printable(step.name + (f"#{step.occurrence}" if step.occurrence > 1 else "")),
            "begun": f"+{duration(step.started_at - begun)}",
            "took": ""
            if step.finished_at is None
            else duration(step.finished_at - step.started_at),
            "tries": str(step.attempts),
            "lane": printable(step.lane or ""),
            "told": printable(_told(step)),
            "result": _result(step, names),
        }
        for step in steps
    ]
    if not any(row["told"] for row in rows):
        for row in rows:
            del row["told"]
    print_table(rows, Looks(right=["begun", "took", "tries"], cut=["result"]))


def _told(step: Step) -> str:
    """What a receipt says of its call."""
    receipt = step.receipt
    if receipt is None:
        return ""
    tokens = [
        f"{count:,} {which}"
        for count, which in ((receipt.tokens_in, "in"), (receipt.tokens_out, "out"))
        if count is not None
    ]
    said = ["void receipt" if receipt.void else "receipt", receipt.model or ""]
    said += [f"{' '.join(tokens)} tokens"] if tokens else []
    said += [] if receipt.price is None else [f"price {receipt.price:g}"]
    return ", ".join(one for one in said if one)


def _result(step: Step, names: Collection[str]) -> str:
    if not step.recorded:
        return "not recorded yet"
    if step.receipt is not None and step.receipt.too_large:
        return "too large to be recorded"
    if step.receipt is not None and step.receipt.kept:
        return f"kept as {step.receipt.kept}"
    if is_sleep(step):
        return time.strftime("until %Y-%m-%d %H:%M:%S", time.localtime(step.result))
    return printable(json.dumps(hidden(step.result, names), ensure_ascii=False))


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
