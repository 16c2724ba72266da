"""`penstock answers`: list, show, cancel."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AnswerOwnerOption, BeforeOption, ThousandOption, new_group
from penstock.cli.output import print_json
from penstock.cli.session import Session

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
    from penstock.cli.answer_view import print_answers
    from penstock.wire.answers import line_of

    with session.opened("answers") as (app, run):
        found = run(app.answers.answers(tenant=tenant, limit=limit, before=before))
    nothing = "no answers older than that" if before else "no answers"
    session.show_list(found, print_answers, nothing, line=line_of, limit=limit)


@group.command("show")
def show(*, answer_id: IdArgument, tenant: AnswerOwnerOption = "default", session: Session) -> None:
    """Show an answer: its text, its citations, and what was not found."""
    from penstock.cli.answer_view import print_answer

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
