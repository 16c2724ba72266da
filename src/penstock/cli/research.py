"""`penstock research`: searches a question at several providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import TaskOwnerOption, option
from penstock.cli.output import is_terminal, note, print_event, say
from penstock.cli.session import Session
from penstock.cli.telemetry import at_work
from penstock.cli.text import duration
from penstock.model.job import PriorityName

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.wire.tasks import Queued


def research(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    query: list[str] | None = option("WORDS", "Search query; repeatable."),
    provider: list[str] | None = option("NAME", "Only this provider; repeatable."),
    max_results: int = option("N", "Maximum results per query.", default=10, min=1),
    budget_pages: int | None = option("N", "Maximum number of pages to read.", min=0),
    budget_seconds: float | None = option("S", "Time limit for searching, in seconds."),
    priority: PriorityName = typer.Option("medium", help="Priority of the searches."),
    watch: bool | None = typer.Option(
        None,
        "--watch/--no-watch",
        help="Run it in this process and show progress (default on a terminal), or only "
        "enqueue it for other processes.",
        show_default=False,
    ),
    tenant: TaskOwnerOption = "default",
    session: Session,
) -> None:
    """Search for publications and web pages, and read them.

    The question becomes a research task. Its queries, or the question itself, go to all configured
    providers; results are merged, and pages that may be read are made searchable. Errors are
    reported, and the other searches continue.

    Workers in this process do the work, together with other worker processes if there are any.
    Ctrl-C leaves the task as it is: `penstock tasks resume ID --watch` continues it. The exit code
    is 1 if every search failed or the task was stopped.

    \b
    penstock research 'How do water wheels age?' --query 'water wheel fatigue' --budget-pages 20
    """
    import asyncio

    app = session.app("research")
    queries, providers = query or [question], provider or None
    app.research.check_searches(queries, max_results, providers)  # before a task is made for them
    task = {"budget_pages": budget_pages, "budget_seconds": budget_seconds, "tenant": tenant}
    searches = {
        "queries": queries,
        "max_results": max_results,
        "priority": priority,
        "providers": providers,
        "tenant": tenant,
    }
    watched = is_terminal() if watch is None else watch
    with at_work("research", app.config.logging):
        code = asyncio.run(_research(app, question, task, searches, session, watch=watched))
    raise typer.Exit(code)


async def _research(
    app: Penstock,
    question: str,
    task: dict[str, Any],
    searches: dict[str, Any],
    session: Session,
    *,
    watch: bool,
) -> int:
    """Queue the searches, run the jobs and follow them; returns the exit code."""
    from penstock.cli.errors import ExitCode
    from penstock.cli.task_run import work_on

    async with app:
        made = await app.research.create(question, **task)
        queued = await app.research.queue_searches(made.id, **searches)
        _announce(queued, watch=watch, as_json=session.as_json)
        if not watch:
            return ExitCode.OK
        return await work_on(app, made.id, made.tenant, as_json=session.as_json)


def _announce(queued: Queued, *, watch: bool, as_json: bool) -> None:
    if as_json:
        print_event("queued", queued)
        return
    if not watch:
        say(queued.task_id)
    searches = "1 search" if queued.queued == 1 else f"{queued.queued:,} searches"
    note(f"task {queued.task_id}: {searches}, about {duration(queued.estimated_time)}")
    if not watch:
        note(f"run it with `penstock worker`, or penstock tasks resume {queued.task_id} --watch")
