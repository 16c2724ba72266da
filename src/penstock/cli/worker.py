"""`penstock worker`: a process that runs jobs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.errors import UsageError
from penstock.cli.options import AppArgument, ConfigOption, JsonOption, QueueOption
from penstock.cli.output import note, print_event
from penstock.cli.telemetry import LogFormatOption, VerboseOption, telemetry
from penstock.cli.text import plural, printable

if TYPE_CHECKING:
    import asyncio

    from penstock.app import Penstock
    from penstock.engine.orchestrator import JobOrchestrator

DRAIN_PAUSE = 0.02
"""Between two looks at whether work is left."""
GRACE_SECONDS = 2.0
"""Running jobs of a command may finish for so long after Ctrl-C; then they go back to the queue
unspent."""


def run_worker(
    target: AppArgument = None,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Exit when no jobs of these kinds remain, including scheduled ones."
        ),
    ] = False,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kinds", metavar="PATTERN", help="Only these kinds: 'ingest.*,fetch'; repeatable."
        ),
    ] = None,
    max_workers: Annotated[
        int | None,
        typer.Option(
            "--max-workers", metavar="N", min=1, help="Maximum number of concurrent jobs."
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace",
            metavar="S",
            min=0,
            help="Grace period in seconds for running jobs at a stop.",
        ),
    ] = None,
    log_format: LogFormatOption = None,
    verbose: VerboseOption = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run jobs in this process.

    Without an app it runs the built-in jobs: ingest.* (documents), research.* and answers.*. An app
    that uses documents, research or answers (`app.use`) runs these as well as its own.

    Stops on SIGTERM or Ctrl-C, or with --drain when no jobs remain. On a signal, running jobs
    get the grace period to finish; jobs that are still running then return to the queue without
    losing an attempt. A second signal skips the grace period.
    """
    import asyncio

    app = load_for_work(target, queue, config)
    settings: dict[str, Any] = {"max_workers": max_workers, "grace_seconds": grace}
    given = {name: value for name, value in settings.items() if value is not None}
    app.config = replace(
        app.config,
        engine=replace(app.config.engine, **given),
        sources={**app.config.sources, **{f"engine.{name}": "argument" for name in given}},
    )
    patterns = [part.strip() for item in kinds or () for part in item.split(",") if part.strip()]
    with telemetry("penstock-worker", app.config.logging, log_format, verbose=verbose):
        code = asyncio.run(_serve(app, patterns or None, drain=drain, as_json=as_json))
    raise typer.Exit(code)


def load_for_work(target: str | None, queue: str | None, config: str | None) -> Penstock:
    """The app that `target` names, or one that knows only the built-in jobs."""
    from penstock.app import Penstock
    from penstock.cli.load_app import load_app
    from penstock.config import hide_secrets

    if target is None:
        return Penstock(queue, config_file=config).use("answers")
    # By way of the environment: the module makes the app, and reads it only while it does.
    if queue is not None:
        os.environ["PENSTOCK_QUEUE"] = queue
    if config is not None:
        os.environ["PENSTOCK_CONFIG"] = config
    app = load_app(target)
    if queue is not None and app.config.queue != queue:
        raise UsageError(
            f"{target} sets its queue to {hide_secrets(app.config.queue)}, so --queue "
            "cannot; leave out --queue, or the URL in Penstock(...)"
        )
    return app


async def _serve(
    app: Penstock, patterns: Sequence[str] | None, *, drain: bool, as_json: bool
) -> int:
    """Run jobs until told to stop or drained; the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals

    handlers = app.handlers if patterns is None else app.handlers.matching(patterns)
    signals = Signals()
    async with app:
        await app.apply_lanes()
        orchestrator = app.orchestrator(kinds=patterns)
        await orchestrator.start()
        _announce(app, sorted(handlers), as_json=as_json)
        assert orchestrator.dispatcher_task is not None
        told = asyncio.create_task(signals.stop.wait())
        ends: list[asyncio.Future[Any]] = [told, orchestrator.dispatcher_task]
        if drain:
            ends.append(asyncio.create_task(_drained(app, list(handlers))))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if told.done():
            _say_stopping(orchestrator, app.config.engine.grace_seconds, as_json=as_json)
        await stop_workers(orchestrator, signals.hasten)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    return signals.stopped(as_json=as_json)


@asynccontextmanager
async def working(app: Penstock, kinds: Sequence[str]) -> AsyncIterator[None]:
    """Workers for these kinds in the process of a command, as long as the block lasts."""
    await app.apply_lanes()
    orchestrator = app.orchestrator(kinds=kinds)
    await orchestrator.start()
    try:
        yield
    finally:
        await orchestrator.stop(grace=min(GRACE_SECONDS, app.config.engine.grace_seconds))


async def stop_workers(orchestrator: JobOrchestrator, hasten: asyncio.Event) -> None:
    """Stop gracefully, or at once when `hasten` is set."""
    import asyncio

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


def _announce(app: Penstock, kinds: Sequence[str], *, as_json: bool) -> None:
    from penstock.config import hide_secrets

    url, workers = hide_secrets(app.config.queue), app.config.engine.max_workers
    if as_json:
        print_event("started", queue=url, kinds=kinds, max_workers=workers, pid=os.getpid())
    else:
        note(
            f"penstock worker {os.getpid()} on {printable(url)}: "
            f"{plural(workers, 'worker')} for {', '.join(kinds)}"
        )


def _say_stopping(orchestrator: JobOrchestrator, grace: float, *, as_json: bool) -> None:
    running = orchestrator.status["busy"]
    if as_json:
        print_event("stopping", grace_seconds=grace, running=running)
    elif running:
        note(
            f"stopping: waiting up to {grace:g} s for {plural(running, 'running job')}; "
            "signal again to stop at once"
        )
    else:
        note("stopping")
