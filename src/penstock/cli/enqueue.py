"""`penstock enqueue`: one job, or a file of them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from penstock.cli.errors import ExitCode, InputError, UsageError
from penstock.cli.options import flag, option, time_of
from penstock.cli.output import (
    console,
    duration,
    is_terminal,
    note,
    plural,
    pretty,
    print_json,
    problem,
    say,
)
from penstock.cli.session import Runner, Session
from penstock.cli.telemetry import traced
from penstock.errors import KeyConflict, PenstockError, ValidationError
from penstock.model.job import Job, JobState, PriorityName
from penstock.model.payload import encode_payload
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
    debounce: float | None = option(
        "S", "Start so many seconds after the last with this --debounce-key, once for all of them."
    ),
    debounce_key: str | None = option("K", "What --debounce goes by: the latest payload counts."),
    max_wait: float | None = option("S", "Put off by --debounce no longer than this. [10 x S]"),
    unique_for: float | None = option(
        "S", "An equal one within so many seconds gives the first one's job."
    ),
    unique_key: str | None = option("K", "What is equal for --unique-for. [the same payload]"),
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
        "debounce": debounce,
        "debounce_key": debounce_key,
        "max_wait": max_wait,
        "unique_for": unique_for,
        "unique_key": unique_key,
    }
    if source is not None:
        if payload is not None or key is not None:
            raise UsageError("--from cannot be combined with a payload or --key; the file has them")
        with traced("enqueue"), session.opened(create=True, told=True) as (app, run):
            ids = _store_file(app, run, kind, source, keyed, options, quiet=session.as_json)
            ended = _wait(app, run, kind, ids, timeout, session) if wait else None
        _report_file(kind, ids, ended, as_json=session.as_json)
    else:
        if keyed:
            raise UsageError("--keyed requires --from FILE; for a single job use --key")
        try:
            arguments = parse_payload(payload) if payload is not None else {}
        except InputError as error:
            raise InputError(f"payload: {error}") from None
        with traced("enqueue"), session.opened(create=True, told=True) as (app, run):
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

    ids: list[str] = []
    batch: list[InputLine] = []
    with open_source(source) as file, meter(file, quiet=quiet) as advance:
        try:
            for batch in batches(file, keyed=keyed):
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


BATCH = 1000


class InputLine(NamedTuple):
    number: int
    payload: dict[str, Any]
    key: str | None


@contextmanager
def open_source(name: str) -> Iterator[IO[bytes]]:
    """Open the file `name`, or standard input for `-`."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115 (closed below; only opening may fail this way)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None
    with file:
        yield file


def parse_payload(text: str | bytes) -> dict[str, Any]:
    """Parse a payload from JSON text; raises InputError that says what is wrong."""
    try:
        payload = json.loads(text)
        encode_payload(payload)
    except UnicodeDecodeError:
        raise InputError("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            raise InputError(str(error)) from None
        raise InputError(f"not JSON: {error}") from None
    if payload is None:
        raise InputError('a payload is a JSON object such as {"url": "..."}, not null')
    return payload  # type: ignore[no-any-return]  # encode_payload takes nothing but a dict


def batches(file: Iterable[bytes], *, keyed: bool) -> Iterator[list[InputLine]]:
    """Read the lines of `file` in batches. Before InputError names a bad line, all lines before it
    have been yielded; empty lines are skipped."""
    batch: list[InputLine] = []
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            batch.append(_line(number, text, keyed=keyed))
        except InputError as error:
            if batch:
                yield batch
            raise InputError(f"line {number}: {error}") from None
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _line(number: int, text: bytes, *, keyed: bool) -> InputLine:
    if not keyed:
        return InputLine(number, parse_payload(text), None)
    whole = parse_payload(text)
    if not whole.keys() <= {"key", "payload"} or not isinstance(whole.get("key"), str):
        raise InputError('with --keyed a line is {"key": "...", "payload": {...}}')
    payload = whole.get("payload", {})
    if not isinstance(payload, dict):
        raise InputError(f"payload is a JSON object, not {json.dumps(payload)[:40]}")
    return InputLine(number, payload, whole["key"])


@contextmanager
def meter(file: IO[bytes], *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr if that is a terminal; call the result with the number of jobs
    stored."""
    if quiet or not is_terminal(sys.stderr):
        yield lambda stored: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    size = file.seek(0, 2) if file.seekable() else None
    if size is not None:
        file.seek(0)
    columns = (TextColumn("{task.fields[stored]:,} jobs stored"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr)) as progress:
        bar = progress.add_task("", total=size, stored=0)

        def advance(stored: int) -> None:
            done = file.tell() if size is not None else 0
            progress.update(bar, completed=done, stored=stored)

        yield advance
