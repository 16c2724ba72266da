"""Output of `penstock ingest`: progress bars on a terminal, lines elsewhere, or JSON; then the
totals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.cli.document_view import about, advice, masked
from penstock.cli.output import console, is_terminal, note, print_event, say
from penstock.cli.text import duration, plural, printable
from penstock.errors import describe
from penstock.model.document import Document

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN_FAILURES = 20
"""Maximum failures listed in the summary; the rest are counted."""
NAME_WIDTH = 40
CONTINUE = "they are in the queue; to continue, run this again or `penstock worker`"


class Active(NamedTuple):
    """A document in progress."""

    id: str
    stage: str
    progress: float
    message: str


@dataclass(slots=True)
class IngestTotals:
    """Counts of the documents of one command, by result."""

    completed: int = 0
    unchanged: int = 0
    waiting: int = 0
    """Accepted, but unfinished when the command ended."""
    chunks: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    deleted: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class View:
    """Receives events in order. A view ignores those that it does not show."""

    def accepted(self, document: Document) -> None: ...

    def unchanged(self, document: Document) -> None: ...

    def progress(self, active: Sequence[Active], pending: int, waits_for: str) -> None:
        """Documents in progress; the number of unfinished ones; what they wait for if none is in
        progress."""

    def completed(self, document: Document) -> None: ...

    def failed(self, name: str, error: Mapping[str, Any]) -> None: ...

    def deleted(self, name: str) -> None: ...

    def close(self) -> None: ...


class JsonView(View):
    def __init__(self) -> None:
        self._last: dict[str, Active] = {}
        self._waits_for = ""

    def accepted(self, document: Document) -> None:
        print_event("accepted", document)

    def unchanged(self, document: Document) -> None:
        print_event("unchanged", document)

    def progress(self, active: Sequence[Active], pending: int, waits_for: str) -> None:
        for one in active:
            if self._last.get(one.id) != one:
                self._last[one.id] = one
                print_event("progress", **one._asdict())
        if waits_for and waits_for != self._waits_for:
            print_event("waiting", waits_for=waits_for, documents=pending)
        self._waits_for = waits_for

    def completed(self, document: Document) -> None:
        self._last.pop(document.id, None)
        print_event("completed", document)

    def failed(self, name: str, error: Mapping[str, Any]) -> None:
        self._last.pop(name, None)
        print_event("failed", id=name, error=error, advice=advice(error, name))

    def deleted(self, name: str) -> None:
        self._last.pop(name, None)
        print_event("deleted", id=name)


class LineView(View):
    """Prints one line per document, once its outcome is known."""

    def __init__(self) -> None:
        self._waits_for = ""

    def unchanged(self, document: Document) -> None:
        say(f"unchanged  {printable(document.id)}")

    def progress(self, active: Sequence[Active], pending: int, waits_for: str) -> None:
        if waits_for and waits_for != self._waits_for:
            note(f"{plural(pending, 'document')}: waiting for {printable(waits_for)}")
        self._waits_for = waits_for

    def completed(self, document: Document) -> None:
        labels = f", masked: {masked(document.masked)}" if document.masked else ""
        say(f"completed  {printable(document.id)}  {about(document)}{labels}")

    def failed(self, name: str, error: Mapping[str, Any]) -> None:
        say(f"failed     {printable(name)}  {printable(error['message'])}")

    def deleted(self, name: str) -> None:
        say(f"deleted    {printable(name)}")


class AcceptedLines(LineView):
    """Output of a command that does not wait: acceptance is the outcome."""

    def accepted(self, document: Document) -> None:
        say(f"accepted   {printable(document.id)}")


class BarView(View):
    """Shows a bar for each document in progress and one for all; failures as lines."""

    def __init__(self, tally: IngestTotals) -> None:
        from rich.live import Live

        self._tally = tally
        self._screen = console()
        self._live = Live(console=self._screen, auto_refresh=False, transient=True)
        self._live.start()

    def failed(self, name: str, error: Mapping[str, Any]) -> None:
        from rich.text import Text

        line = Text.assemble(("failed ", "bold red"), f" {printable(name)}  ")
        self._screen.print(line.append(printable(error["message"])), soft_wrap=True)

    def progress(self, active: Sequence[Active], pending: int, waits_for: str) -> None:
        room = max(1, self._screen.height - 4)
        self._live.update(self._bars(active[:room], pending, waits_for), refresh=True)

    def _bars(self, active: Sequence[Active], pending: int, waits_for: str) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        tally = self._tally
        table = Table.grid(padding=(0, 2))
        for shrinks in (False, False, False, True):
            table.add_column(no_wrap=not shrinks)
        for one in active:
            # The end of a path says more than its beginning.
            name = printable(one.id)
            name = name if len(name) <= NAME_WIDTH else "…" + name[1 - NAME_WIDTH :]
            bar = ProgressBar(total=1.0, completed=one.progress, width=20)
            what = f"{one.stage}  {printable(one.message)}".rstrip()
            table.add_row(name, bar, f"{one.progress:4.0%}", Text(what, "dim", no_wrap=True))
        done = tally.completed + tally.unchanged + len(tally.failures)
        total = done + pending
        share = (done + sum(one.progress for one in active)) / total if total else 0.0
        sums = f"{done:,} of {total:,}" + (f", waits for {waits_for}" if waits_for else "")
        table.add_row(
            Text("all", "bold"),
            ProgressBar(total=1.0, completed=share, width=20),
            f"{share:4.0%}",
            Text(f"{sums}  {duration(tally.seconds)}", no_wrap=True, overflow="ellipsis"),
        )
        return table

    def close(self) -> None:
        self._live.stop()


def view_for(tally: IngestTotals, *, as_json: bool, wait: bool) -> View:
    if as_json:
        return JsonView()
    if not wait:
        return AcceptedLines()
    return BarView(tally) if is_terminal() else LineView()


def failure_of(error: Exception) -> dict[str, Any]:
    """Describe an item that was not accepted."""
    return describe(error, retryable=False)


def summarise(tally: IngestTotals, *, as_json: bool, interrupted: bool) -> None:
    """Print the summary."""
    if as_json:
        print_event(
            "summary",
            completed=tally.completed,
            unchanged=tally.unchanged,
            failed=len(tally.failures),
            deleted=tally.deleted,
            waiting=tally.waiting,
            chunks=tally.chunks,
            masked=tally.masked,
            seconds=round(tally.seconds, 3),
            interrupted=interrupted,
        )
        return
    rows = [
        ("completed", tally.completed, _work(tally), "green"),
        ("unchanged", tally.unchanged, "already there", "green"),
        ("deleted", tally.deleted, "file removed", "green"),
        ("failed", len(tally.failures), "", "bold red"),
        ("waiting", tally.waiting, f"{'stopped; ' if interrupted else ''}{CONTINUE}", "yellow"),
    ]
    shown = [row for row in rows if row[1]] or rows[:1]
    if not is_terminal():
        say()
    for word, count, remark, style in shown:
        _line(f"{word:<9}  {count:>6,}", remark, style)
        if word == "failed":
            _print_failures(tally.failures)


def _print_failures(failures: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    for name, error in failures[:SHOWN_FAILURES]:
        say(f"  {printable(name)}: {printable(error['message'])}")
        say(f"    {printable(advice(error, name))}")
    if (more := len(failures) - SHOWN_FAILURES) > 0:
        say(f"  and {more:,} more: penstock documents list --state failed")


def _work(tally: IngestTotals) -> str:
    if not tally.completed:
        return ""
    labels = f"; masked: {masked(tally.masked)}" if tally.masked else ""
    return f"{plural(tally.chunks, 'chunk')} in {duration(tally.seconds)}{labels}"


def _line(head: str, remark: str, style: str) -> None:
    if not is_terminal():
        say(f"{head}  {remark}".rstrip())
        return
    from rich.text import Text

    console().print(Text.assemble((head, style), "  ", remark), soft_wrap=True)
