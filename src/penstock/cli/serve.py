"""`penstock serve`: the HTTP API with workers."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.intake import need_kafka
from penstock.cli.options import AppArgument, ConfigOption, JsonOption, QueueOption
from penstock.cli.output import note, print_event
from penstock.cli.telemetry import LogFormatOption, VerboseOption, telemetry
from penstock.cli.text import plural, printable
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.cli.stopping import Signals
    from penstock.engine.orchestrator import JobOrchestrator
    from penstock.model.server import ServerConfig
    from penstock.server.run import HttpServing


def run_server(
    target: AppArgument = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on. [127.0.0.1]"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port; 0 picks a free one. [8321]"
        ),
    ] = None,
    no_workers: Annotated[
        bool, typer.Option("--no-workers", help="Run no jobs; leave them to other processes.")
    ] = False,
    allow_anonymous: Annotated[
        bool,
        typer.Option(
            "--allow-anonymous",
            help="Accept requests without a key from every user of this machine.",
        ),
    ] = False,
    log_format: LogFormatOption = None,
    verbose: VerboseOption = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the HTTP API and the dashboard, with workers in the same process.

    Requests from this machine by the user who runs the server need no API key. All others do, and
    listening on other addresses (--host 0.0.0.0) requires one: `penstock keys create NAME`.
    /openapi.json describes the API.

    Stops on SIGTERM or Ctrl-C: new requests are refused, streams and long polls end so that
    clients can resume, and running requests and jobs finish within their time limits. A second
    signal stops at once.
    """
    import asyncio
    import logging

    from penstock.cli.worker import load_for_work

    try:
        import penstock.server.run  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        raise ConfigError("the server needs: pip install 'penstock[server]'") from None
    app = load_for_work(target, queue, config).use("answers", "keys")
    pass_on_uploads(app)
    given: dict[str, Any] = {"host": host, "port": port, "allow_anonymous": allow_anonymous or None}
    server = replace(
        app.config.server, **{name: value for name, value in given.items() if value is not None}
    )
    for documents in ("uvicorn", "mcp"):
        logging.getLogger(documents).setLevel(logging.WARNING)
    with telemetry("penstock-server", app.config.logging, log_format, verbose=verbose):
        code = asyncio.run(_serve(app, server, workers=not no_workers, as_json=as_json))
    raise typer.Exit(code)


def pass_on_uploads(app: Penstock) -> None:
    """To Kafka, where that is configured."""
    if app.config.intake.kafka.produce is None:
        return
    need_kafka("intake.kafka.produce")
    from penstock.intake.produce import UploadProducer

    app.documents.hand_over(UploadProducer(app.config.intake.kafka))


async def _serve(app: Penstock, config: ServerConfig, *, workers: bool, as_json: bool) -> int:
    """Serve until told to stop; the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals
    from penstock.server.draining import Draining
    from penstock.server.run import bind, listening

    signals, draining = Signals(), Draining()
    # First of all: where that is not to be, nothing is made and nothing started.
    with bind(config) as bound:
        async with app:
            orchestrator: JobOrchestrator | None = None
            async with listening(app, config, draining, bound) as serving:
                if workers:
                    await app.apply_lanes()
                    orchestrator = app.orchestrator()
                    await orchestrator.start()
                _announce(app, serving.address, workers=workers, as_json=as_json)
                told = asyncio.create_task(signals.stop.wait())
                ends: list[asyncio.Future[Any]] = [told, serving.done]
                if orchestrator is not None and orchestrator.dispatcher_task is not None:
                    ends.append(orchestrator.dispatcher_task)
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                told.cancel()
                draining.begin()
                _say_stopping(orchestrator, as_json=as_json)
                hasten = asyncio.create_task(_hasten(signals, serving))
                # Workers stop taking jobs at once: no request waits for one any more.
                stopping = asyncio.create_task(_stop(orchestrator, signals))
            await stopping
            hasten.cancel()
    return signals.stopped(as_json=as_json)


async def _stop(orchestrator: JobOrchestrator | None, signals: Signals) -> None:
    from penstock.cli.worker import stop_workers

    if orchestrator is not None:
        await stop_workers(orchestrator, signals.hasten)


async def _hasten(signals: Signals, serving: HttpServing) -> None:
    await signals.hasten.wait()
    serving.hasten()


def _announce(app: Penstock, address: str, *, workers: bool, as_json: bool) -> None:
    from penstock.config import hide_secrets

    url = hide_secrets(app.config.queue)
    count = app.config.engine.max_workers if workers else 0
    if as_json:
        print_event("started", address=address, queue=url, max_workers=count, pid=os.getpid())
    else:
        what = plural(count, "worker") if workers else "no workers"
        note(f"penstock serves {address} on {printable(url)}, with {what}; Ctrl-C to stop")


def _say_stopping(orchestrator: JobOrchestrator | None, *, as_json: bool) -> None:
    running = 0 if orchestrator is None else orchestrator.status["busy"]
    if as_json:
        print_event("stopping", running=running)
    elif running:
        note(
            f"stopping: waiting for {plural(running, 'running job')}; signal again to stop at once"
        )
    else:
        note("stopping")
