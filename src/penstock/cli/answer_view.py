"""Displays an answer: a line in a list, or all its details."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.output import (
    Column,
    console,
    is_terminal,
    print_fields,
    print_table,
    say,
    state_style,
)
from penstock.cli.text import age, duration, moment, printable

if TYPE_CHECKING:
    from penstock.model.answer import Answer, Evidence


def print_answers(answers: Sequence[Answer]) -> None:
    columns = [
        Column("id"),
        Column("state", style=state_style),
        Column("mode"),
        Column("age", right=True),
        Column("question", fit="cut"),
    ]
    rows = [
        [one.id, str(one.state), one.mode, age(one.created_at), printable(one.question)]
        for one in answers
    ]
    print_table(columns, rows)


def print_answer(answer: Answer) -> None:
    """Everything about one answer."""
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
    """Some of an answer, with its line ends and nothing else that a terminal would obey. It is seen
    at once, also by who reads a pipe."""
    sys.stdout.write("\n".join(map(printable, text.split("\n"))))
    sys.stdout.flush()


def print_grounds(answer: Answer) -> None:
    """What a text is founded on, and what it is not."""
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
