"""`penstock librarian`: serves the search loop of answers."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from penstock.cli.options import AppArgument, given, option
from penstock.cli.session import Session
from penstock.cli.telemetry import LogFormatOption, telemetry
from penstock.cli.text import printable

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from penstock.app import Penstock
    from penstock.model.librarian import LibrarianConfig
    from penstock.ports.librarian import Librarian


def run_librarian(
    *,
    target: AppArgument = None,
    host: str | None = option("ADDRESS", "Address to listen on. [127.0.0.1]"),
    port: int | None = option("N", "Port; 0 picks a free one. [8331]", min=0, max=65535),
    log_format: LogFormatOption = None,
    session: Session,
) -> None:
    """Serve the librarian, which searches for evidence on behalf of answers, over gRPC.

    Processes that answer questions use it when `librarian.address` is set; otherwise they search
    themselves. It runs no jobs, and observes the lanes of the queue as jobs do. Listening on other
    addresses than this machine requires a token (`librarian.token_variable`).

    Stops on SIGTERM or Ctrl-C: new searches are refused, running ones get some time to finish. A
    second signal stops at once.
    """
    import asyncio

    from penstock.answers.setup import local_librarian
    from penstock.cli.load_app import load_for_work, need_extra

    need_extra("the librarian", "grpc", "penstock.librarian.server")
    app = load_for_work(target, session.queue, session.config).use("documents")
    librarian = local_librarian(app.queue, app.documents, app.config)
    where = replace(app.config.librarian, **given(host=host, port=port))
    with telemetry("penstock-librarian", app.config.logging, log_format):
        code = asyncio.run(_serve(app, librarian, where, session))
    raise typer.Exit(code)


async def _serve(
    app: Penstock, librarian: Librarian, config: LibrarianConfig, session: Session
) -> int:
    """Serve until told to stop; returns the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals
    from penstock.errors import QueueUnavailable
    from penstock.librarian.server import serving

    signals = Signals()
    async with app:
        await app.apply_lanes()
        member = app.orchestrator(works=False)
        await member.start()

        async def ready() -> None:
            if member.degraded is not None:
                raise QueueUnavailable(member.degraded)
            await app.queue.versions([("default", "")])
            await app.documents.documents(limit=1)

        try:
            async with serving(librarian, member.asking, app.queue.now, ready, config) as served:
                _announce(app, served.address, session)
                await signals.wait_or(member.dispatcher_task)
                waits = "waiting for running searches; signal again to stop at once"
                session.tell("stopping", f"stopping: {waits}")
                hasten = asyncio.create_task(_hasten(signals.hasten, served.hasten))
            hasten.cancel()
        finally:
            await member.stop(grace=0)
    return signals.stopped(session)


async def _hasten(told: asyncio.Event, end: Callable[[], Awaitable[None]]) -> None:
    await told.wait()
    await end()


def _announce(app: Penstock, address: str, session: Session) -> None:
    from penstock.config import hide_secrets

    url = hide_secrets(app.config.queue)
    text = f"penstock librarian serves {address} on {printable(url)}; Ctrl-C to stop"
    session.tell("started", text, address=address, queue=url, pid=os.getpid())
