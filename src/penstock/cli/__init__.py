"""The `penstock` command: translates between people, programs and the library.

Heavy imports (the engine, asyncio, pydantic, rich) are made inside the commands that need them,
so that `penstock --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, partial
from typing import Annotated

import typer

from penstock.cli.answers import group as answers_group
from penstock.cli.ask import ask_question
from penstock.cli.budgets import group as budgets_group
from penstock.cli.call import call_tool
from penstock.cli.dead_letters import group as dead_letters_group
from penstock.cli.doctor import run_doctor, show_config
from penstock.cli.documents import group as documents_group
from penstock.cli.enqueue import enqueue_jobs
from penstock.cli.errors import EXIT_CODES, guarded
from penstock.cli.forecast import show_forecast
from penstock.cli.ingest import ingest_documents
from penstock.cli.intake import group as intake_group
from penstock.cli.jobs import group as jobs_group
from penstock.cli.keys import group as keys_group
from penstock.cli.lanes import group as lanes_group
from penstock.cli.librarian import run_librarian
from penstock.cli.mcp import run_mcp
from penstock.cli.options import (
    HELP_NAMES,
    ConfigOption,
    JsonOption,
    QueueOption,
    hand_down,
    new_typer,
    show_help,
)
from penstock.cli.research import research
from penstock.cli.schedules import group as schedules_group
from penstock.cli.search import search_documents
from penstock.cli.serve import run_server
from penstock.cli.status import list_actions, list_periodic, show_status
from penstock.cli.tasks import group as tasks_group
from penstock.cli.usage import show_usage
from penstock.cli.worker import run_worker

cli = new_typer(epilog=EXIT_CODES)


@cli.callback(invoke_without_command=True)
def penstock(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Durable jobs, shared rate limits and cited answers for RAG and research systems.

    The queue comes from --queue, PENSTOCK_QUEUE or penstock.yaml, in this order; the default is
    sqlite:///penstock.db. Every command prints JSON with --json. These options can be given
    before or after the command.
    """
    hand_down(ctx, queue=queue, config=config, as_json=as_json)
    if version:
        from penstock import __version__

        typer.echo(f"penstock {__version__}")
        raise typer.Exit
    show_help(ctx)


cli.command("serve")(run_server)
cli.command("mcp")(run_mcp)
cli.command("librarian")(run_librarian)
cli.add_typer(intake_group, name="intake")
cli.command("worker")(run_worker)
cli.command("enqueue")(enqueue_jobs)
cli.command("call")(call_tool)
cli.add_typer(jobs_group, name="jobs")
cli.add_typer(dead_letters_group, name="dead-letters")
cli.add_typer(lanes_group, name="lanes")
cli.command("forecast")(show_forecast)
cli.command("periodic")(list_periodic)
cli.add_typer(schedules_group, name="schedules")
cli.command("ingest")(ingest_documents)
cli.command("search")(search_documents)
cli.add_typer(documents_group, name="documents")
cli.command("research")(research)
cli.add_typer(tasks_group, name="tasks")
cli.command("ask")(ask_question)
cli.add_typer(answers_group, name="answers")
cli.add_typer(keys_group, name="keys")
cli.command("actions")(list_actions)
cli.command("usage")(show_usage)
cli.add_typer(budgets_group, name="budgets")
cli.command("status")(show_status)
cli.command("config")(show_config)
cli.command("doctor")(run_doctor)


# Once a process: it takes some 50 ms, since every option of every command is looked at.
command = cache(partial(typer.main.get_command, cli))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are printed to stderr."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)

    def invoke() -> None:
        # Not command().main(): it has exit codes and messages of its own.
        with command().make_context(
            "penstock", list(arguments), help_option_names=HELP_NAMES
        ) as context:
            command().invoke(context)

    return guarded(invoke, as_json="--json" in arguments)
