"""`penstock call`: a call of a tool of the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.errors import ExitCode, InputError, UsageError
from penstock.cli.options import ConfigOption, JsonOption, QueueOption, flag, option
from penstock.cli.output import note, pretty, print_json, say
from penstock.cli.telemetry import traced

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.model.job import Job


def call_tool(
    *,
    tool: Annotated[str | None, typer.Argument(metavar="TOOL", help="Name of the tool.")] = None,
    arguments: Annotated[
        str | None, typer.Argument(metavar="JSON", help="Arguments, a JSON object. [{}]")
    ] = None,
    target: str | None = typer.Option(
        None,
        "--app",
        metavar="MODULE:APP",
        envvar="PENSTOCK_APP",
        help="The Penstock object with the tools, e.g. shop:app.",
    ),
    key: str | None = option("K", "Idempotency key: the same key is the same call."),
    tenant: str = option("T", "Tenant that makes the call.", default="default"),
    wait: bool = flag("--wait", "Wait for the call, and print its result."),
    timeout: float | None = option("S", "Wait no longer than this, in seconds.", min=0),
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call a tool of an app (`@app.tool`); without TOOL, list them.

    The call is a job: prints its id once it is stored durably. A worker process runs it, such as
    `penstock worker`, `penstock serve` or `penstock mcp`.

    \b
    penstock call --app shop:app quote '{"item": "cider"}' --wait
    """
    import asyncio

    from penstock.cli.load_app import load_for_work

    if timeout is not None and not wait:
        raise UsageError("--timeout requires --wait")
    if target is None:
        raise UsageError("name the app whose tools they are: --app shop:app, or PENSTOCK_APP")
    app = load_for_work(target, queue, config)
    if tool is None:
        _list(app, as_json=as_json)
        return
    given = _parsed(arguments)
    with traced("call"):
        job = asyncio.run(_call(app, tool, given, key, tenant, timeout, wait=wait, quiet=as_json))
    if as_json:
        from penstock.wire.calls import call_view

        print_json(call_view(job))
    elif wait:
        say(_outcome(job))
    if wait and job.state != "completed":
        raise typer.Exit(ExitCode.UNSUCCESSFUL)


async def _call(
    app: Penstock,
    name: str,
    arguments: dict[str, Any],
    key: str | None,
    tenant: str,
    timeout: float | None,
    *,
    wait: bool,
    quiet: bool,
) -> Job:
    from penstock.api.tenant_view import TenantView
    from penstock.api.tool_calls import ToolCalls
    from penstock.model.access import EVERYTHING, Caller

    async with app:
        calls = ToolCalls(TenantView(app, tenant), Caller(tenant, EVERYTHING))
        job = await calls.begin(calls.tool(name), arguments, key=key)
        if not quiet:
            say(job.id)
        return await app.wait(job.id, timeout) if wait else job


def _list(app: Penstock, *, as_json: bool) -> None:
    from penstock.wire.calls import tool_line

    if as_json:
        print_json([tool_line(tool) for tool in app.tools.values()])
        return
    if not app.tools:
        note("the app has no tools: write @app.tool above a function")
    for tool in app.tools.values():
        signature = ", ".join(
            name if name in tool.parameters.get("required", ()) else f"{name}?"
            for name in tool.parameters["properties"]
        )
        say(f"{tool.name}({signature})  {tool.description.splitlines()[0]}")


def _parsed(text: str | None) -> dict[str, Any]:
    from penstock.cli.enqueue import parse_payload

    try:
        return {} if text is None else parse_payload(text)
    except InputError as error:
        raise InputError(f"arguments: {error}") from None


def _outcome(job: Job) -> str:
    from penstock.wire.calls import error_line

    if job.state == "completed":
        return pretty(job.result)
    return f"{job.state}: {error_line(job)}" if job.error is not None else str(job.state)
