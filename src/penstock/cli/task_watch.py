"""Follows a research task: live on a terminal, otherwise a line per change."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.output import STATE_STYLES, console, is_terminal, note, print_event, say
from penstock.cli.task_view import PAGES, budget, remark, results, title_of, trouble
from penstock.cli.text import duration, plural, printable
from penstock.wire.tasks import SearchView, TaskView, Trouble, Work

if TYPE_CHECKING:
    from rich.console import RenderableType

NEWEST = 5
"""Maximum new results shown."""
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+")
WORK_STYLES = {"read": "green", "waiting": "yellow", "failed": "red", "none": ""}
AROUND = 12
"""Lines of the screen not used for searches."""


class TaskNews(NamedTuple):
    """Changes since the last update."""

    searches: list[SearchView]
    works: list[Work]
    """New works, and those whose page has been read or failed since."""
    errors: list[Trouble]
    waiting_for: tuple[str, ...] | None
    """None: unchanged."""


class ShownTask:
    """State of a task as last shown, so that nothing is shown twice."""

    def __init__(self) -> None:
        self._searches: dict[str, SearchView] = {}
        self._pages: dict[str, str] = {}
        self._errors: set[Trouble] = set()
        self._waiting_for: tuple[str, ...] = ()

    def news(self, view: TaskView) -> TaskNews:
        searches = [one for one in view.searches if self._searches.get(one.id) != one]
        works = [one for one in view.results if self._pages.get(_key(one)) != one.page]
        errors = [one for one in view.errors if one not in self._errors]
        changed = view.waiting_for != self._waiting_for
        self._searches.update((one.id, one) for one in searches)
        self._pages.update((_key(one), one.page) for one in works)
        self._errors.update(errors)
        self._waiting_for = view.waiting_for
        return TaskNews(searches, works, errors, view.waiting_for if changed else None)


def _key(work: Work) -> str:
    """Key of a work that stays the same as more becomes known about it."""
    return work.doi or work.arxiv_id or work.url


class TaskDisplay:
    def __init__(self) -> None:
        self._seen = ShownTask()

    def look(self, view: TaskView) -> None:
        """Called with each state of the task."""

    def close(self) -> None: ...


class JsonShow(TaskDisplay):
    def look(self, view: TaskView) -> None:
        news = self._seen.news(view)
        for search in news.searches:
            print_event("search", search)
        for work in news.works:
            print_event("result", work)
        for error in news.errors:
            print_event("error", error)
        if news.waiting_for:
            print_event("waiting", waiting_for=news.waiting_for)


class LineShow(TaskDisplay):
    """Prints a line for each change of a search, each result and each error."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, str] = {}
        self._waits: set[str] = set()

    def look(self, view: TaskView) -> None:
        news = self._seen.news(view)
        for work in news.works:
            word = {"read": "read", "failed": "unread"}.get(work.page, "found")
            say(f"{word:<9}  {title_of(work)}  {printable(work.url)}")
        for error in news.errors:
            say(f"{'error':<9}  {trouble(error)}")
        for search in news.searches:
            if self._states.get(search.id) != search.state:
                self._states[search.id] = search.state
                say(f"{search.state:<9}  search {search.number}: {_outcome(search)}")
        waits = [one for one in news.waiting_for or () if self._is_new(one)]
        if waits:
            note(f"waiting for {'; '.join(map(printable, waits))}")

    def _is_new(self, reason: str) -> bool:
        """Whether an error is new: retries of an unreachable service only change its times."""
        reason = TIMES.sub("", reason)
        new = reason not in self._waits
        self._waits.add(reason)
        return new


def _outcome(search: SearchView) -> str:
    found = f"  {plural(search.found, 'result')}" if search.state == "completed" else ""
    why = f"  ({printable(search.reason)})" if search.reason else ""
    return f"{printable(search.query)}{found}{why}"


class LiveShow(TaskDisplay):
    """Shows searches, the newest results, errors, what jobs wait for and the rest of the budget."""

    def __init__(self) -> None:
        from rich.live import Live

        super().__init__()
        self._began = time.monotonic()
        self._newest: dict[str, Work] = {}
        self._screen = console()
        self._live = Live(console=self._screen, auto_refresh=False, transient=True)
        self._live.start()

    def look(self, view: TaskView) -> None:
        news = self._seen.news(view)
        for work in news.works:
            self._newest.pop(_key(work), None)
            self._newest[_key(work)] = work
        self._newest = dict(list(self._newest.items())[-NEWEST:])
        self._live.update(self._drawn(view), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def _drawn(self, view: TaskView) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        def line(text: str, style: str = "") -> Text:
            return Text(text, style, no_wrap=True, overflow="ellipsis")

        took = duration(time.monotonic() - self._began)
        sums = f"{view.progress} searches, results: {results(view)}  {took}"
        parts: list[RenderableType] = [line(printable(view.question), "bold"), line(sums)]
        parts.append(_searches(view.searches, max(1, self._screen.height - AROUND)))
        parts += [
            line(f"{PAGES[work.page] or 'found'}  {title_of(work)}", WORK_STYLES[work.page])
            for work in self._newest.values()
        ]
        if view.errors:
            count = plural(len(view.errors), "error")
            parts.append(line(f"{count}, the last: {trouble(view.errors[-1])}", "red"))
        if view.waiting_for:
            waits = "; ".join(map(printable, view.waiting_for))
            parts.append(line(f"waiting for {waits}", "yellow"))
        if limits := budget(view.budget):
            parts.append(line(f"budget: {limits}", "dim"))
        parts.append(line("Ctrl-C stops watching; the task stays in the queue.", "dim"))
        return Group(*parts)


def _searches(searches: Sequence[SearchView], room: int) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, caption_justify="left")
    for shrinks in (False, False, False, True):
        table.add_column(no_wrap=not shrinks)
    # What happens now goes first; what does not fit on the screen is only counted.
    order = ["running", "failed", "queued", "completed"]
    shown = searches
    if len(searches) > room:
        shown = sorted(searches, key=lambda one: order.index(one.state))[:room]
        table.caption = f"and {len(searches) - room:,} more"
    for one in shown:
        about = f"{printable(one.query)}  {remark(one.reason)}".rstrip()
        table.add_row(
            f"{one.number:>3}",
            Text(one.state, style=STATE_STYLES[one.state]),
            f"{one.found:,} found",
            Text(about, no_wrap=True, overflow="ellipsis"),
        )
    return table


def show_for(*, as_json: bool) -> TaskDisplay:
    if as_json:
        return JsonShow()
    return LiveShow() if is_terminal() else LineShow()
