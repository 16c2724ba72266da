"""`penstock answers`: list, show, cancel; and how an answer is displayed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AnswerOwnerOption, BeforeOption, ThousandOption, new_group
from penstock.cli.output import (
    Looks,
    console,
    is_terminal,
    print_fields,
    print_json,
    print_table,
    say,
)
from penstock.cli.session import Session
from penstock.cli.text import age, duration, moment, printable

if TYPE_CHECKING:
    from penstock.model.answer import Answer, Evidence

group = new_group("List, show and cancel answers.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Answer id.")]


@group.command("list")
def list_answers(
    *,
    tenant: AnswerOwnerOption = "default",
    limit: ThousandOption = 50,
    before: BeforeOption = None,
    session: Session,
) -> None:
    """List answers, newest first."""
    from penstock.wire.answers import line_of

    with session.opened("answers") as (app, run):
        found = run(app.answers.answers(tenant=tenant, limit=limit, before=before))
    nothing = "no answers older than that" if before else "no answers"
    session.show_list(found, print_answers, nothing, line=line_of, limit=limit)


@group.command("show")
def show(*, answer_id: IdArgument, tenant: AnswerOwnerOption = "default", session: Session) -> None:
    """Show an answer: its text, its citations, and what was not found."""
    with session.opened("answers") as (app, run):
        view = run(app.answers.get(answer_id, tenant=tenant))
    if session.as_json:
        print_json(view)
    else:
        print_answer(view.answer)


@group.command("cancel")
def cancel(
    *, answer_id: IdArgument, tenant: AnswerOwnerOption = "default", session: Session
) -> None:
    """Cancel a question. A finished one is left as it is."""
    from penstock.wire.answers import line_of

    with session.opened("answers") as (app, run):
        answer = run(app.answers.cancel(answer_id, tenant=tenant))
    session.show(line_of(answer), str(answer.state))


def print_answers(answers: Sequence[Answer]) -> None:
    rows = [
        {
            "id": one.id,
            "state": str(one.state),
            "mode": one.mode,
            "age": age(one.created_at),
            "question": printable(one.question),
        }
        for one in answers
    ]
    print_table(rows, Looks(right=["age"], cut=["question"]))


def print_answer(answer: Answer) -> None:
    """Print all details of an answer."""
    took = None if answer.finished_at is None else answer.finished_at - answer.created_at
    print_fields(
        {
            "id": answer.id,
            "question": printable(answer.question),
            "sources": str(answer.sources),
            "collections": ", ".join(map(printable, answer.collections or ())),
            "state": str(answer.state),
            "error": printable(answer.error or ""),
            "phase": "" if answer.over else str(answer.phase),
            "mode": answer.mode,
            "models": ", ".join(f"{phase}: {name}" for phase, name in answer.models.items()),
            "research": answer.task or "",
            "asked": moment(answer.created_at),
            "took": "" if took is None else duration(took),
        }
    )
    if answer.text:
        say()
        write_text(answer.text)
        say()
    print_grounds(answer)


def write_text(text: str) -> None:
    """Print part of an answer, with its line ends but no other control characters. It is flushed at
    once, also to a pipe."""
    sys.stdout.write("\n".join(map(printable, text.split("\n"))))
    sys.stdout.flush()


def print_grounds(answer: Answer) -> None:
    """Print the citations of a text, and what is missing."""
    from penstock.answers.event_text import cited_evidence

    cited = cited_evidence(answer)
    if cited:
        say()
        for one in cited:
            _print_cited(one)
    _print_list("without a citation", [answer.text[slice(*at)] for at in answer.unsupported])
    _print_list("not found", answer.missing)
    _print_list("notes", answer.notes)


def _print_cited(one: Evidence) -> None:
    from penstock.cli.document_view import where

    name = printable(one.source or one.document)
    title, place = printable(one.title) or name, where(one.pages, ())
    head, tail = f"[{one.number}] ", "" if title == name else f"  {name}"
    place = f", {place}" if place else ""
    if not is_terminal():
        say(f"{head}{title}{place}{tail}")
        say(f"    {_snippet(one)}")
        return
    from rich.text import Text

    line = Text.assemble(head, (title, "bold"), place, (tail, "cyan"))
    console().print(line, soft_wrap=True)
    console().print(Text(f"    {_snippet(one)}", style="dim"), soft_wrap=True)


def _snippet(one: Evidence) -> str:
    from penstock.retrieval.query import query_terms
    from penstock.retrieval.snippet import snippet

    weights = dict.fromkeys(query_terms(one.query).terms, 1.0)
    return " ".join(printable(part) for part in snippet(one.text, weights).text.split())


def _print_list(what: str, lines: Sequence[str]) -> None:
    if lines:
        say()
        say(f"{what}:")
        for line in lines:
            say(f"  - {' '.join(printable(part) for part in line.split())}")
