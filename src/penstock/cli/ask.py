"""`penstock ask`: answers a question, with citations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from penstock.cli.options import AnswerOwnerOption, option
from penstock.cli.session import Session
from penstock.cli.telemetry import at_work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.app import Penstock
    from penstock.cli.answer_watch import AnswerDisplay
    from penstock.model.answer import Answer
    from penstock.model.change import Change

KINDS = ("answers.*", "research.*", "ingest.*")
"""Kinds to run; with `--sources web` also those that search and read pages."""
WAIT_SECONDS = 10.0
"""Maximum wait for events, before checking whether it is finished."""


def ask_question(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    sources: Literal["documents", "web"] = typer.Option(
        "documents", help="Stored documents only, or also web search."
    ),
    collection: list[str] | None = option("NAME", "Only this collection; repeatable."),
    seconds: float | None = option("S", "Time limit, in seconds."),
    stream: bool = typer.Option(
        True, "--stream/--no-stream", help="Print the text as it is written, or all at once."
    ),
    tenant: AnswerOwnerOption = "default",
    session: Session,
) -> None:
    """Answer a question from the documents, with citations.

    Progress goes to stderr; the answer goes to stdout: its text as it is written, then its
    citations, the sentences without one, and what was not found. Without a language model the
    answer consists of sentences quoted from the documents.

    Workers in this process do the work, together with other worker processes if there are any.
    After Ctrl-C those continue; `penstock answers show ID` shows the answer. The exit code is 1 if
    it failed or was cancelled.

    \b
    penstock ask 'Where are the shear pins?' --collection manuals
    """
    import asyncio

    from penstock.cli.answer_watch import show_for

    app = session.app("answers")
    asked = {
        "sources": sources,
        "collections": collection or None,
        "seconds": seconds,
        "tenant": tenant,
    }
    show = show_for(as_json=session.as_json, stream=stream)
    with at_work("ask", app.config.logging):
        code = asyncio.run(_answer(app, question, asked, show))
    raise typer.Exit(code)


async def _answer(app: Penstock, question: str, asked: dict[str, Any], show: AnswerDisplay) -> int:
    """Ask, run the jobs and show the answer; returns the exit code."""
    import asyncio

    from penstock.aio import end_tasks
    from penstock.cli.errors import ExitCode
    from penstock.cli.stopping import EXIT_SECONDS, Signals, exit_after
    from penstock.cli.worker import working
    from penstock.model.answer import AnswerState

    signals = Signals()
    async with app:
        answer = await app.answers.ask(question, **asked)
        show.begin(answer)
        async with working(app, KINDS):
            following = asyncio.create_task(_follow(app, answer, show))
            try:
                await signals.wait_or(following)
            finally:
                await end_tasks([following])
        if following.cancelled():
            show.left(answer, await _others(app))
            code = ExitCode.INTERRUPTED
        else:
            over = following.result()
            show.end(over)
            completed = over.state is AnswerState.COMPLETED
            code = ExitCode.OK if completed else ExitCode.UNSUCCESSFUL
    exit_after(EXIT_SECONDS, code)
    return code


async def _follow(app: Penstock, answer: Answer, show: AnswerDisplay) -> Answer:
    """Show events until the answer is finished, and return it."""
    async for change in _changes(app, answer):
        show.tell(change)
    return (await app.answers.get(answer.id, tenant=answer.tenant)).answer


async def _changes(app: Penstock, answer: Answer) -> AsyncIterator[Change]:
    from penstock.answers.completion import TERMINAL
    from penstock.cli.watch import looks

    since = 0

    async def look() -> tuple[bool, list[Change]]:
        over = (await app.answers.get(answer.id, tenant=answer.tenant)).answer.over
        wait = 1.0 if over else WAIT_SECONDS  # its end is told a moment after it is over
        told = await app.answers.events(answer.id, since, wait=wait, tenant=answer.tenant)
        return over, told

    async for over, told in looks(look):
        for change in told:
            since = change.version
            yield change
            if change.what in TERMINAL:
                return
        if over and not told:
            return


async def _others(app: Penstock) -> str:
    """Say who continues the rest of the work."""
    from penstock.answers.jobs import CLOCK

    there = any(CLOCK in process.kinds for process in await app.processes())
    return "other workers continue" if there else "`penstock worker` continues it"
