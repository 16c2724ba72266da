"""`penstock enqueue`: one job, or a file of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.errors import ExitCode, InputError, UsageError
from penstock.cli.options import flag, option, time_of
from penstock.cli.output import note, print_json, say
from penstock.cli.session import Runner, Session
from penstock.cli.telemetry import traced
from penstock.cli.text import duration, plural, pretty, problem
from penstock.errors import KeyConflict, PenstockError
from penstock.model.job import Job, JobState, PriorityName
from penstock.model.redact import hidden_job

if TYPE_CHECKING:
    from penstock.app import Penstock

SHOWN_FAILURES = 10


def enqueue_jobs(
    *,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Kind of the job.")],
    payload: str | None = typer.Argument(None, metavar="JSON", help="Payload, a JSON object. [{}]"),
    source: str | None = option("FILE", "One job per line of this file; - is stdin.", "--from"),
    keyed: bool = flag("--keyed", 'Lines of FILE are {"key": "...", "payload": {...}}.'),
    key: str | None = option("K", "Idempotency key: the same key gives the same job."),
    priority: PriorityName = typer.Option("medium", help="Higher priority runs first."),
    delay: float | None = option("S", "Run after this many seconds.", min=0),
    run_at: str | None = option("TIME", "Run not before this time: 2030-01-31T09:00 (local)."),
    deadline: str | None = option("TIME", "Run not after this time: 2030-01-31T09:00Z (UTC)."),
    job_timeout: float | None = option("S", "Timeout of an attempt, in seconds."),
    max_retries: int | None = option("N", "Maximum number of retries."),
    tenant: str = option("T", "Tenant that owns the job.", default="default"),
    log: str | None = option("L", "The log it reports to."),
    wait: bool = flag("--wait", "Wait for the job, and print its result."),
    timeout: float | None = option("S", "Wait no longer than this, in seconds.", min=0),
    session: Session,
) -> None:
    """Enqueue a job, or a file of jobs.

    Prints the job's id once the job is stored durably.

    Each line of a file is a payload; lines are stored 1,000 at a time. With --keyed every line has
    an idempotency key, so the same file can be enqueued again without creating duplicates.

    \b
    penstock enqueue resize '{"url": "https://example.org/a.png"}' --wait
    penstock enqueue resize --from urls.jsonl --priority low
    """
    from penstock.cli import jsonl

    if timeout is not None and not wait:
        raise UsageError("--timeout requires --wait")
    options: dict[str, Any] = {
        "priority": priority,
        "delay": delay,
        "run_at": time_of("--run-at", run_at),
        "deadline": time_of("--deadline", deadline),
        "timeout": job_timeout,
        "max_retries": max_retries,
        "tenant": tenant,
        "log": log,
    }
    if source is not None:
        if payload is not None or key is not None:
            raise UsageError("--from cannot be combined with a payload or --key; the file has them")
        with traced("enqueue"), session.opened(create=True) as (app, run):
            ids = _store_file(app, run, kind, source, keyed, options, quiet=session.as_json)
            ended = _wait(app, run, kind, ids, timeout, session) if wait else None
        _report_file(kind, ids, ended, as_json=session.as_json)
    else:
        if keyed:
            raise UsageError("--keyed requires --from FILE; for a single job use --key")
        try:
            arguments = jsonl.parse_payload(payload) if payload is not None else {}
        except InputError as error:
            raise InputError(f"payload: {error}") from None
        with traced("enqueue"), session.opened(create=True) as (app, run):
            job = run(app.enqueue(kind, arguments, key=key, **options))
            if not session.as_json:
                say(job.id)
            ended = _wait(app, run, kind, [job.id], timeout, session) if wait else None
        if session.as_json:
            print_json(ended[0] if ended else job)
        elif ended:
            say(_outcome(ended[0]))
    if ended and any(job.state is not JobState.COMPLETED for job in ended):
        raise typer.Exit(ExitCode.UNSUCCESSFUL)


def _store_file(
    app: Penstock,
    run: Runner,
    kind: str,
    source: str,
    keyed: bool,
    options: dict[str, Any],
    *,
    quiet: bool,
) -> list[str]:
    """Store a job per line; an error also says how many lines were stored."""
    from penstock.cli import jsonl

    ids: list[str] = []
    batch: list[jsonl.InputLine] = []
    with jsonl.open_source(source) as file, jsonl.meter(file, quiet=quiet) as advance:
        try:
            for batch in jsonl.batches(file, keyed=keyed):
                payloads = [line.payload for line in batch]
                keys = [line.key for line in batch] if keyed else None
                jobs = run(app.enqueue_many(kind, payloads, keys=keys, **options))
                ids += [job.id for job in jobs]
                advance(len(ids))
        except PenstockError as error:
            if isinstance(error, KeyConflict):
                number = max(line.number for line in batch if line.key == error.key)
                error.add_note(f"this is line {number}")
            before = f" before line {batch[0].number}" if not isinstance(error, InputError) else ""
            stored = plural(len(ids), "job") if ids else "nothing"
            error.add_note(f"stored{before}: {stored}")
            raise
        except KeyboardInterrupt:
            note(f"stored: {plural(len(ids), 'job')}")
            raise
    return ids


def _wait(
    app: Penstock,
    run: Runner,
    kind: str,
    ids: Sequence[str],
    timeout: float | None,
    session: Session,
) -> list[Job]:
    """Print how the jobs ended, with secrets hidden for people."""
    import asyncio

    from penstock.api.attention import live_kinds, worker_command

    async def wait() -> list[Job]:
        return list(await asyncio.gather(*(app.wait(job_id, timeout) for job_id in ids)))

    if session.as_json:
        return run(wait())
    if kind not in live_kinds(run(app.processes()), app.queue.now()):
        note(f"no worker process handles {kind}; start one: {worker_command(kind)}")
    return [hidden_job(job, app.config.logging.hidden_names) for job in run(wait())]


def _report_file(
    kind: str, ids: Sequence[str], ended: Sequence[Job] | None, *, as_json: bool
) -> None:
    states = Counter(str(job.state) for job in ended or ())
    if as_json:
        print_json({"stored": len(ids), "ids": ids} | ({"states": states} if ended else {}))
        return
    say(f"stored {plural(len(ids), 'job')} of kind {kind}")
    if ended:
        say(", ".join(f"{count:,} {state}" for state, count in sorted(states.items())))
        bad = [job for job in ended if job.state is not JobState.COMPLETED]
        for job in bad[:SHOWN_FAILURES]:
            say(f"{job.id}  {_outcome(job)}")
        if len(bad) > SHOWN_FAILURES:
            say(f"and {len(bad) - SHOWN_FAILURES:,} more: penstock jobs list --state failed")


def _outcome(job: Job) -> str:
    match job.state:
        case JobState.COMPLETED:
            took = (job.finished_at or 0.0) - (job.started_at or job.enqueued_at)
            return f"completed in {duration(took)}: {pretty(job.result)}"
        case JobState.FAILED:
            return f"failed: {problem(job.error)}"
        case _:
            return str(job.state)
