"""`penstock mcp`: MCP tools on standard input and output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli.options import (
    AppArgument,
    ConfigOption,
    QueueOption,
    ToolsOption,
    families_of,
    flag,
    option,
)
from penstock.cli.output import note, plural, print_json, printable
from penstock.cli.session import Session
from penstock.cli.telemetry import LogFormatOption, VerboseOption, telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.app import Penstock
    from penstock.mcp.stdio import Pipes
    from penstock.wiring.services import Service

SQLITE = "sqlite:///"
SERVICES: dict[str, Service] = {
    "documents": "research",  # whose pages they read
    "research": "research",
    "answers": "answers",
}
"""What the tools of a family need."""


def run_mcp(
    target: AppArgument = None,
    tenant: str = option("T", "Tenant whose tasks and documents are used.", default="default"),
    tools: ToolsOption = None,
    no_workers: bool = flag("--no-workers", "Run no jobs; leave them to other processes."),
    show_config: bool = flag(
        "--print-config", "Print the configuration for an MCP client, and exit."
    ),
    log_format: LogFormatOption = None,
    verbose: VerboseOption = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
) -> None:
    """Serve MCP tools on standard input and output, with workers in the same process.

    The tools are those of the app (`@app.tool`), and those for research tasks, answers, document
    search and ingestion; --tools says which. An MCP client, such as an editor or an assistant,
    starts this command; --print-config prints the configuration to paste into the client.

    Stops at the end of input or on SIGTERM: pending requests are answered and running jobs
    finish within the grace period. What remains stays in the queue for the next start or another
    process. Any number of these processes can share one queue with each other and with `penstock
    serve`.
    """
    import asyncio
    import logging

    from penstock.cli.load_app import load_for_work, need_extra

    need_extra("MCP", "mcp", "penstock.mcp.stdio")
    from penstock.mcp.stdio import Pipes

    families = families_of(tools)
    if show_config:
        app = load_for_work(target, queue, config)
        print_json(_client_config(app, target, tenant, config, tools, no_workers=no_workers))
        return
    pipes = Pipes()  # first of all: what the app's module prints is not for the client
    app = load_for_work(target, queue, config)
    chosen = families or app.config.server.mcp_tools
    app.use(*{SERVICES[family] for family in chosen if family in SERVICES})
    logging.getLogger("mcp").setLevel(logging.WARNING)
    with telemetry("penstock-mcp", app.config.logging, log_format, verbose=verbose):
        code = asyncio.run(_serve(app, tenant, pipes, chosen, workers=not no_workers))
    raise typer.Exit(code)


async def _serve(
    app: Penstock, tenant: str, pipes: Pipes, families: Sequence[str], *, workers: bool
) -> int:
    """Serve until the input ends or told to stop; returns the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals
    from penstock.cli.worker import start_workers, stop_workers
    from penstock.mcp.server import PenstockMCP
    from penstock.mcp.stdio import Stdio
    from penstock.mcp.tool_view import McpServices
    from penstock.mcp.waiting import Stopping
    from penstock.model.access import EVERYTHING, Caller

    signals, stopping = Signals(), Stopping()
    caller = Caller(tenant, EVERYTHING)
    service = McpServices(app, lambda request: caller, stopping)
    server = PenstockMCP(service, families=families)
    async with app:
        orchestrator = await start_workers(app) if workers else None
        _announce(app, tenant, workers=workers)
        serving = asyncio.create_task(Stdio(server, stopping, pipes).serve())
        await signals.wait_or(serving, orchestrator.dispatcher_task if orchestrator else None)
        stopping.begin()
        busy = 0 if orchestrator is None else orchestrator.status["busy"]
        note(f"stopping: waiting for {plural(busy, 'running job')}" if busy else "stopping")
        # A client that has closed the input sends a signal when it has waited long enough, and
        # kills what has not gone soon after. By then jobs have to be back in the queue.
        hasten = signals.hasten if signals.stop.is_set() else signals.stop
        await stop_workers(orchestrator, hasten)
        await serving
    return signals.stopped(Session())


def _announce(app: Penstock, tenant: str, *, workers: bool) -> None:
    from penstock.config import hide_secrets

    what = plural(app.config.engine.max_workers, "worker") if workers else "no workers"
    url = printable(hide_secrets(app.config.queue))
    note(
        f"penstock mcp {os.getpid()} on {url} for tenant {printable(tenant)}, with {what}; "
        "reading MCP from standard input"
    )


def _client_config(
    app: Penstock,
    target: str | None,
    tenant: str,
    config: str | None,
    tools: str | None,
    *,
    no_workers: bool,
) -> dict[str, Any]:
    """Build the configuration for a client. Clients start the command in another directory, so
    every path is absolute."""
    from penstock.config import DEFAULT_FILE, hide_secrets

    arguments = ["mcp", *([] if target is None else [target])]
    url = app.config.queue
    if url.startswith(SQLITE):
        path = Path(url.removeprefix(SQLITE)).expanduser().absolute()
        arguments += ["--queue", f"{SQLITE}{path}"]
    elif hide_secrets(url) == url:
        arguments += ["--queue", url]
    else:
        note("the queue URL contains a secret; set PENSTOCK_QUEUE in the client's `env` instead")
    settings = Path(config or os.environ.get("PENSTOCK_CONFIG") or DEFAULT_FILE)
    if settings.exists():
        arguments += ["--config", str(settings.absolute())]
    if tenant != "default":
        arguments += ["--tenant", tenant]
    if tools is not None:
        arguments += ["--tools", tools]
    if no_workers:
        arguments.append("--no-workers")
    command = Path(sys.executable).with_name("penstock")
    server: dict[str, Any] = {"command": str(command), "args": arguments}
    if target is not None:
        server["env"] = {"PYTHONPATH": str(Path.cwd())}  # where the module is looked for
    return {"mcpServers": {"penstock": server}}
