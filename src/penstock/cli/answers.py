"""`penstock answers`: list, show, cancel."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import (
    AnswerOwnerOption,
    BeforeOption,
    ConfigOption,
    JsonOption,
    QueueOption,
    ThousandOption,
    new_group,
)
from penstock.cli.output import note, print_json, say
from penstock.cli.session import opened

group = new_group("List, show and cancel answers.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Answer id.")]


@group.command("list")
def list_answers(
    tenant: AnswerOwnerOption = "default",
    limit: ThousandOption = 50,
    before: BeforeOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List answers, newest first."""
    from penstock.cli.answer_view import print_answers
    from penstock.wire.answers import line_of

    with opened(queue, config, "answers") as (app, run):
        found = run(app.answers.answers(tenant=tenant, limit=limit, before=before))
    if as_json:
        print_json([line_of(one) for one in found])
    elif not found:
        note("no answers older than that" if before else "no answers")
    else:
        print_answers(found)
        if len(found) == limit:
            note(f"there may be more: --before {found[-1].id}")


@group.command("show")
def show(
    answer_id: IdArgument,
    tenant: AnswerOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an answer: its text, its citations, and what was not found."""
    from penstock.cli.answer_view import print_answer

    with opened(queue, config, "answers") as (app, run):
        view = run(app.answers.get(answer_id, tenant=tenant))
    if as_json:
        print_json(view)
    else:
        print_answer(view.answer)


@group.command("cancel")
def cancel(
    answer_id: IdArgument,
    tenant: AnswerOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a question. A finished one is left as it is."""
    from penstock.wire.answers import line_of

    with opened(queue, config, "answers") as (app, run):
        answer = run(app.answers.cancel(answer_id, tenant=tenant))
    if as_json:
        print_json(line_of(answer))
    else:
        say(str(answer.state))
