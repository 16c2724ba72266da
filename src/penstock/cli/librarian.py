"""`penstock librarian`: serves the search loop of answers."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AppArgument, ConfigOption, JsonOption, QueueOption
from penstock.cli.output import note, print_event
from penstock.cli.telemetry import LogFormatOption, telemetry
from penstock.cli.text import printable
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from penstock.app import Penstock
    from penstock.model.librarian import LibrarianConfig
    from penstock.ports.librarian import Librarian


def run_librarian(
    target: AppArgument = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on. [127.0.0.1]"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port; 0 picks a free one. [8331]"
        ),
    ] = None,
    log_format: LogFormatOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
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
    from penstock.cli.worker import load_for_work

    try:
        import penstock.librarian.server  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        raise ConfigError("the librarian needs: pip install 'penstock[grpc]'") from None
    app = load_for_work(target, queue, config).use("documents")
    librarian = local_librarian(app.queue, app.documents, app.config)
    given: dict[str, Any] = {"host": host, "port": port}
    where = replace(
        app.config.librarian, **{name: value for name, value in given.items() if value is not None}
    )
    with telemetry("penstock-librarian", app.config.logging, log_format):
        code = asyncio.run(_serve(app, librarian, where, as_json=as_json))
    raise typer.Exit(code)


async def _serve(
    app: Penstock, librarian: Librarian, config: LibrarianConfig, *, as_json: bool
) -> int:
    """Serve until told to stop; the exit code."""
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
                _announce(app, served.address, as_json=as_json)
                told = asyncio.create_task(signals.stop.wait())
                assert member.dispatcher_task is not None
                ends: list[asyncio.Future[Any]] = [told, member.dispatcher_task]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                told.cancel()
                if as_json:
                    print_event("stopping")
                else:
                    note("stopping: waiting for running searches; signal again to stop at once")
                hasten = asyncio.create_task(_hasten(signals.hasten, served.hasten))
            hasten.cancel()
        finally:
            await member.stop(grace=0)
    return signals.stopped(as_json=as_json)


async def _hasten(told: asyncio.Event, end: Callable[[], Awaitable[None]]) -> None:
    await told.wait()
    await end()


def _announce(app: Penstock, address: str, *, as_json: bool) -> None:
    from penstock.config import hide_secrets

    url = hide_secrets(app.config.queue)
    if as_json:
        print_event("started", address=address, queue=url, pid=os.getpid())
    else:
        note(f"penstock librarian serves {address} on {printable(url)}; Ctrl-C to stop")
