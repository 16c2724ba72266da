"""`penstock serve`: the HTTP API with workers."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from penstock.cli.options import AppArgument, ToolsOption, families_of, flag, given, option
from penstock.cli.output import plural, printable
from penstock.cli.session import Session
from penstock.cli.telemetry import LogFormatOption, VerboseOption, telemetry

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.cli.stopping import Signals
    from penstock.engine.orchestrator import JobOrchestrator
    from penstock.model.server import ServerConfig
    from penstock.server.run import HttpServing


def run_server(
    *,
    target: AppArgument = None,
    host: str | None = option("ADDRESS", "Address to listen on. [127.0.0.1]"),
    port: int | None = option("N", "Port; 0 picks a free one. [8321]", min=0, max=65535),
    tools: ToolsOption = None,
    no_workers: bool = flag("--no-workers", "Run no jobs; leave them to other processes."),
    allow_anonymous: bool = flag(
        "--allow-anonymous", "Accept requests without a key from every user of this machine."
    ),
    log_format: LogFormatOption = None,
    verbose: VerboseOption = False,
    session: Session,
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

    from penstock.api.tool_names import check_names
    from penstock.cli.load_app import load_for_work, need_extra

    need_extra("the server", "server", "penstock.server.run")
    app = load_for_work(target, session.queue, session.config).use("answers", "keys")
    pass_on_uploads(app)
    settings = given(
        host=host, port=port, allow_anonymous=allow_anonymous or None, mcp_tools=families_of(tools)
    )
    server = replace(app.config.server, **settings)
    check_names(app, server.mcp_tools)
    for library in ("uvicorn", "mcp"):
        logging.getLogger(library).setLevel(logging.WARNING)
    with telemetry("penstock-server", app.config.logging, log_format, verbose=verbose):
        code = asyncio.run(_serve(app, server, session, workers=not no_workers))
    raise typer.Exit(code)


def pass_on_uploads(app: Penstock) -> None:
    """Publish uploads to Kafka, if configured."""
    if app.config.intake.kafka.produce is None:
        return
    from penstock.cli.load_app import need_extra

    need_extra("intake.kafka.produce", "kafka", "penstock.intake.run")
    from penstock.intake.produce import UploadProducer

    app.documents.hand_over(UploadProducer(app.config.intake.kafka))


async def _serve(app: Penstock, config: ServerConfig, session: Session, *, workers: bool) -> int:
    """Serve until told to stop; returns the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals
    from penstock.cli.worker import start_workers, stop_workers
    from penstock.server.draining import Draining
    from penstock.server.run import bind, listening

    signals, draining = Signals(), Draining()
    # First of all: where that is not to be, nothing is made and nothing started.
    with bind(config) as bound:
        async with app:
            async with listening(app, config, draining, bound) as serving:
                orchestrator = await start_workers(app) if workers else None
                _announce(app, serving.address, session, workers=workers)
                await signals.wait_or(
                    serving.done, orchestrator.dispatcher_task if orchestrator else None
                )
                draining.begin()
                _say_stopping(orchestrator, session)
                hasten = asyncio.create_task(_hasten(signals, serving))
                # Workers stop taking jobs at once: no request waits for one any more.
                stopping = asyncio.create_task(stop_workers(orchestrator, signals.hasten))
            await stopping
            hasten.cancel()
    return signals.stopped(session)


async def _hasten(signals: Signals, serving: HttpServing) -> None:
    await signals.hasten.wait()
    serving.hasten()


def _announce(app: Penstock, address: str, session: Session, *, workers: bool) -> None:
    from penstock.config import hide_secrets

    url = hide_secrets(app.config.queue)
    count = app.config.engine.max_workers if workers else 0
    what = plural(count, "worker") if workers else "no workers"
    text = f"penstock serves {address} on {printable(url)}, with {what}; Ctrl-C to stop"
    facts = {"address": address, "queue": url, "max_workers": count, "pid": os.getpid()}
    session.tell("started", text, **facts)


def _say_stopping(orchestrator: JobOrchestrator | None, session: Session) -> None:
    running = 0 if orchestrator is None else orchestrator.status["busy"]
    waits = f"waiting for {plural(running, 'running job')}; signal again to stop at once"
    session.tell("stopping", f"stopping: {waits}" if running else "stopping", running=running)
