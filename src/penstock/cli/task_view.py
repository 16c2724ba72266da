"""Displays a research task: a line in a list, or all its details."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.output import (
    Looks,
    console,
    is_terminal,
    print_fields,
    print_table,
    say,
)
from penstock.cli.text import age, duration, moment, plural, printable

if TYPE_CHECKING:
    from penstock.wire.tasks import Budget, TaskLine, TaskView, Trouble, Work

AUTHORS = 3
"""Maximum authors named; the rest are `and others`."""
PAGES = {"read": "read", "waiting": "reading", "failed": "read failed", "none": ""}


def print_tasks(tasks: Sequence[TaskLine]) -> None:
    rows = [
        {
            "id": one.task_id,
            "status": str(one.status),
            "searches": one.progress,
            "age": age(one.created_at),
            "question": printable(one.question),
        }
        for one in tasks
    ]
    print_table(rows, Looks(right=["searches", "age"], cut=["question"]))


def print_task(view: TaskView) -> None:
    """Print all details of a task, with the results in `view`."""
    print_fields(
        {
            "id": view.task_id,
            "question": printable(view.question),
            "status": str(view.status),
            "searches": f"{view.progress} done",
            "results": results(view),
            "budget": budget(view.budget),
            "waiting for": "; ".join(map(printable, view.waiting_for)),
            "created": moment(view.created_at),
        }
    )
    if view.searches:
        say()
        print_searches(view)
    if view.results:
        say()
        print_works(view.results)
    print_troubles(view.errors)


def print_searches(view: TaskView) -> None:
    rows = [
        {
            "search": str(one.number),
            "state": one.state,
            "found": f"{one.found:,}",
            "query": printable(one.query),
            "remark": remark(one.reason),
        }
        for one in view.searches
    ]
    print_table(rows, Looks(right=["search", "found"], cut=["query", "remark"]))


def remark(reason: str | None) -> str:
    return printable(reason or "")


def print_works(works: Sequence[Work]) -> None:
    """Print works, each with its URL, and whether it was read."""
    for number, work in enumerate(works, 1):
        title = title_of(work)
        if not is_terminal():
            say(f"{number:>3}. {title}  {PAGES[work.page]}".rstrip())
        else:
            from rich.text import Text

            style = "green" if work.page == "read" else "dim"
            head = Text.assemble(f"{number:>3}. ", (title, "bold"), "  ", (PAGES[work.page], style))
            console().print(head, soft_wrap=True)
        say(f"     {printable(work.url)}")
        say(f"     {_about(work)}")


def title_of(work: Work) -> str:
    return printable(work.title) + (f" ({work.year})" if work.year else "")


def _about(work: Work) -> str:
    """Format the authors and providers of a work."""
    by = ", ".join(map(printable, work.authors[:AUTHORS]))
    others = " and others" if len(work.authors) > AUTHORS else ""
    found = f"found by {', '.join(map(printable, work.providers))}"
    return f"{by}{others}; {found}" if by else found


def print_troubles(errors: Sequence[Trouble]) -> None:
    if errors:
        say()
        say(f"{plural(len(errors), 'error')}; the other searches continued")
        for one in errors:
            say(f"  {trouble(one)}")


def trouble(one: Trouble) -> str:
    """Format a problem: its subject, and what went wrong."""
    where = one.url or one.provider or f"search {one.query!r}"
    return f"{printable(where)}: {printable(one.reason)}"


def results(view: TaskView) -> str:
    """Format the number of results: `12, 3 of them read`; reading is known only of those in
    `view`."""
    read = sum(work.page == "read" for work in view.results)
    whole = len(view.results) == view.total_results
    return f"{view.total_results:,}" + (f", {read:,} of them read" if read and whole else "")


def budget(limits: Budget) -> str:
    """Format the budget, used and left; '' without one."""
    parts = []
    if limits.pages is not None:
        parts.append(f"{limits.pages_used:,} of {plural(limits.pages, 'page')} used")
    if limits.seconds is not None:
        left = limits.seconds if limits.seconds_left is None else limits.seconds_left
        parts.append(f"{duration(left)} of {duration(limits.seconds)} left")
    return ", ".join(parts)
