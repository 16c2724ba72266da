"""`penstock worker`: a process that runs jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from penstock.cli.options import AppArgument, flag, given, option
from penstock.cli.output import note, plural, printable
from penstock.cli.session import Session
from penstock.cli.telemetry import LogFormatOption, VerboseOption, telemetry

if TYPE_CHECKING:
    import asyncio

    from penstock.app import Penstock
    from penstock.engine.orchestrator import JobOrchestrator

DRAIN_PAUSE = 0.02
"""Interval between checks whether work is left."""
GRACE_SECONDS = 2.0
"""Grace period for running jobs of a command after Ctrl-C; then they return to the queue without
spending an attempt."""


def run_worker(
    *,
    target: AppArgument = None,
    drain: bool = flag(
        "--drain", "Exit when no jobs of these kinds remain, including scheduled ones."
    ),
    kinds: list[str] | None = option("PATTERN", "Only these kinds: 'ingest.*,fetch'; repeatable."),
    max_workers: int | None = option("N", "Maximum number of concurrent jobs.", min=1),
    grace: float | None = option("S", "Grace period in seconds for running jobs at a stop.", min=0),
    processes: int | None = option(
        "N", "Run so many of these processes, and start another for each that dies.", min=1, max=256
    ),
    reload: bool = flag(
        "--reload", "Restart when a Python file below the current folder changes; for development."
    ),
    supervised: bool = flag("--supervised", "Stop when the standard input ends.", hidden=True),
    log_format: LogFormatOption = None,
    verbose: VerboseOption = False,
    session: Session,
) -> None:
    """Run jobs in this process.

    Without an app it runs the built-in jobs: ingest.* (documents), research.* and answers.*. An app
    that uses documents, research or answers (`app.use`) runs these as well as its own.

    Stops on SIGTERM or Ctrl-C, or with --drain when no jobs remain. On a signal, running jobs
    get the grace period to finish; jobs that are still running then return to the queue without
    losing an attempt. A second signal skips the grace period.

    With --processes, a process that dies is replaced after a second, and after twice as long each
    time it dies again, up to 30 s; one that has no app to run ends all.
    """
    import asyncio

    if (processes is not None or reload) and not supervised:
        from penstock.cli.supervisor import supervise

        some = supervise(session, sys.argv[1:], processes or 1, reload=reload)
        raise typer.Exit(asyncio.run(some))
    if supervised:
        from penstock.cli.supervisor import end_with_supervisor

        end_with_supervisor()

    from penstock.cli.load_app import load_for_work

    app = load_for_work(target, session.queue, session.config)
    settings = given(max_workers=max_workers, grace_seconds=grace)
    app.config = replace(
        app.config,
        engine=replace(app.config.engine, **settings),
        sources={**app.config.sources, **{f"engine.{name}": "argument" for name in settings}},
    )
    patterns = [part.strip() for item in kinds or () for part in item.split(",") if part.strip()]
    with telemetry("penstock-worker", app.config.logging, log_format, verbose=verbose):
        code = asyncio.run(_serve(app, patterns or None, session, drain=drain))
    raise typer.Exit(code)


async def _serve(
    app: Penstock, patterns: Sequence[str] | None, session: Session, *, drain: bool
) -> int:
    """Run jobs until told to stop or drained; returns the exit code."""
    import asyncio

    from penstock.aio import end_tasks
    from penstock.cli.stopping import Signals

    handlers = app.handlers if patterns is None else app.handlers.matching(patterns)
    signals = Signals()
    async with app:
        orchestrator = await start_workers(app, patterns)
        _announce(app, sorted(handlers), session)
        drained = asyncio.create_task(_drained(app, list(handlers))) if drain else None
        await signals.wait_or(orchestrator.dispatcher_task, drained)
        if signals.stop.is_set():
            _say_stopping(orchestrator, app.config.engine.grace_seconds, session)
        await stop_workers(orchestrator, signals.hasten)
        if drained is not None:
            await end_tasks([drained])
    return signals.stopped(session)


async def start_workers(app: Penstock, kinds: Sequence[str] | None = None) -> JobOrchestrator:
    """Start workers for these kinds, or all that the app handles."""
    await app.apply_lanes()
    orchestrator = app.orchestrator(kinds=kinds)
    await orchestrator.start()
    return orchestrator


@asynccontextmanager
async def working(app: Penstock, kinds: Sequence[str]) -> AsyncIterator[None]:
    """Run workers for these kinds inside the block, in the process of a command."""
    orchestrator = await start_workers(app, kinds)
    try:
        yield
    finally:
        await orchestrator.stop(grace=min(GRACE_SECONDS, app.config.engine.grace_seconds))


async def stop_workers(orchestrator: JobOrchestrator | None, hasten: asyncio.Event) -> None:
    """Stop the workers, if any: gracefully, or at once when `hasten` is set."""
    import asyncio

    if orchestrator is None:
        return
    stopping = asyncio.create_task(orchestrator.stop())
    hastened = asyncio.create_task(hasten.wait())
    await asyncio.wait([stopping, hastened], return_when=asyncio.FIRST_COMPLETED)
    if hastened.done():
        note("stopping at once: running jobs return to the queue")
        await orchestrator.stop(grace=0)
    hastened.cancel()
    await stopping


async def _drained(app: Penstock, kinds: Sequence[str]) -> None:
    """Return when no job of these kinds is queued or running, here or elsewhere."""
    import asyncio

    from penstock.errors import QueueUnavailable
    from penstock.ports.queue import Topic

    listener = app.queue.listen(Topic.FINISHED)
    try:
        while True:
            try:
                if not await app.queue.work_left(kinds):
                    return
            except QueueUnavailable:
                pass  # the dispatcher says so, and reconnects
            await listener.wait(app.config.engine.poll_seconds)
            await asyncio.sleep(DRAIN_PAUSE)
    finally:
        listener.close()


def _announce(app: Penstock, kinds: Sequence[str], session: Session) -> None:
    from penstock.config import hide_secrets

    url, workers = hide_secrets(app.config.queue), app.config.engine.max_workers
    session.tell(
        "started",
        f"penstock worker {os.getpid()} on {printable(url)}: "
        f"{plural(workers, 'worker')} for {', '.join(kinds)}",
        queue=url,
        kinds=kinds,
        max_workers=workers,
        pid=os.getpid(),
    )


def _say_stopping(orchestrator: JobOrchestrator, grace: float, session: Session) -> None:
    running = orchestrator.status["busy"]
    waits = f"waiting up to {grace:g} s for {plural(running, 'running job')}"
    text = f"stopping: {waits}; signal again to stop at once" if running else "stopping"
    session.tell("stopping", text, grace_seconds=grace, running=running)
