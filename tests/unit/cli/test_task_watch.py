"""What the command line shows of a research task while it is worked on."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import task_watch
from penstock.cli.task_view import budget, print_task, trouble
from penstock.cli.task_watch import JsonShow, LineShow, LiveShow
from penstock.model.research import SearchState, TaskStatus
from penstock.wire.tasks import Budget, PageProgress, SearchView, TaskView, Trouble, Work


def search(number: int, state: str = "queued", **more: Any) -> SearchView:
    given = {"providers": ("openalex",), "found": 0, "reason": None, **more}
    return SearchView(f"s{number}", number, f"query {number}", SearchState(state), **given)


def work(number: int, page: PageProgress = "none", **more: Any) -> Work:
    given: dict[str, Any] = {
        "title": f"Work {number}",
        "url": f"https://site.example/{number}",
        "authors": ("Ada Byron",),
        "year": 2024,
        "doi": f"10.5555/{number}",
        "arxiv_id": None,
        "abstract": None,
        "open_access_url": None,
        "providers": ("openalex",),
        "queries": ("query 1",),
        "collection": None,
        "document": None,
    }
    return Work(page=page, **(given | more))


AT = "2026-11-16T13:49:{}+00:00"
START = TaskView(
    task_id="0" * 32,
    question="How do wheels age?",
    status=TaskStatus.RUNNING,
    progress="0/2",
    searches=(search(1), search(2)),
    results=(),
    total_results=0,
    cursor=None,
    errors=(),
    waiting_for=(),
    budget=Budget(None, 0, None, None),
    version=2,
    next_poll=50.0,
    created_at=0.0,
)
HALF = replace(
    START,
    searches=(search(1, "running", found=2), search(2)),
    results=(work(1, "waiting"), work(2)),
    total_results=2,
    errors=(Trouble("query 1", "crossref", None, "HTTP 500"),),
    waiting_for=("lane openalex",),
)
END = replace(
    HALF,
    status=TaskStatus.COMPLETED,
    progress="2/2",
    searches=(search(1, "completed", found=2), search(2, "failed", reason="nobody answered")),
    # Of the first more is known by now, but it is the same work.
    results=(work(1, "read", url="https://other.example/1"), work(2)),
    waiting_for=(),
)


def test_lines_tell_each_change_once(capsys: pytest.CaptureFixture[str]) -> None:
    show = LineShow()
    told = []
    for view in (START, START, HALF, HALF, END, END):
        show.look(view)
        told.append(capsys.readouterr())
    assert told[0].out.splitlines() == [
        "queued     search 1: query 1",
        "queued     search 2: query 2",
    ]
    assert told[2].out.splitlines() == [
        "found      Work 1 (2024)  https://site.example/1",
        "found      Work 2 (2024)  https://site.example/2",
        "error      crossref: HTTP 500",
        "running    search 1: query 1",
    ]
    assert told[2].err == "waiting for lane openalex\n"
    assert told[4].out.splitlines() == [
        "read       Work 1 (2024)  https://other.example/1",
        "completed  search 1: query 1  2 results",
        "failed     search 2: query 2  (nobody answered)",
    ]
    assert [told[at].out + told[at].err for at in (1, 3, 5)] == ["", "", ""]


def test_lines_tell_once_what_cannot_be_reached(capsys: pytest.CaptureFixture[str]) -> None:
    show = LineShow()
    for second in range(10, 40):
        waits = f"lane openalex: its breaker is open (cannot reach host:443), next try at {AT}"
        show.look(replace(HALF, waiting_for=(waits.format(second),)))
    assert capsys.readouterr().err.count("cannot reach host:443") == 1


def test_json_tells_each_change_once_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show = JsonShow()
    for view in (START, HALF, HALF, END):
        show.look(view)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["event"] for one in told] == [
        *("search", "search"),
        *("search", "result", "result", "error", "waiting"),
        *("search", "search", "result"),
    ]
    assert told[-1]["page"] == "read"
    assert told[-2]["reason"] == "nobody answered"


def test_a_screen_shows_how_things_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100, height=20)
    monkeypatch.setattr(task_watch, "console", lambda: screen)
    show = LiveShow()
    many = tuple(search(n, "completed") for n in range(1, 40))
    busy = replace(HALF, searches=(*many, search(40, "running")), budget=Budget(10, 3, 60.0, 45.0))
    show.look(START)
    show.look(busy)
    show.look(replace(busy, results=(work(1, "read"), work(2))))
    show.close()
    with screen.capture() as captured:
        screen.print(show._drawn(busy))
    shown = captured.get()
    for text in (
        "How do wheels age?",
        "query 40",
        "and 32 more",
        "read  Work 1 (2024)",
        "found  Work 2 (2024)",
        "1 error, the last: crossref: HTTP 500",
        "waiting for lane openalex",
        "budget: 3 of 10 pages used, 45 s of 1 min left",
    ):
        assert text in shown
    assert shown.count("Work 1 (2024)") == 1, "a work whose page was read is not shown twice"
    assert shown.count("\n") <= screen.height


def test_what_others_wrote_is_printed_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2J[bold]wheels\nx"
    view = replace(
        END,
        question=evil,
        results=(work(1, title=evil, url=evil, authors=(evil,) * 5, doi=None),),
        searches=(replace(search(1, "failed"), query=evil, reason=evil),),
        errors=(Trouble(evil, None, evil, evil),),
        waiting_for=(evil,),
    )
    print_task(view)
    LineShow().look(view)
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "[bold]wheels\\nx" in said.out


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Budget(None, 7, None, None), ""),
        (Budget(1, 0, None, None), "0 of 1 page used"),
        (Budget(10, 3, 60.0, 45.0), "3 of 10 pages used, 45 s of 1 min left"),
        (Budget(None, 0, 90.0, None), "2 min of 2 min left"),
    ],
)
def test_budget(limits: Budget, text: str) -> None:
    assert budget(limits) == text


def test_trouble_says_what_it_is_about() -> None:
    assert trouble(Trouble("q", "openalex", None, "no")) == "openalex: no"
    assert trouble(Trouble("q", None, "https://a.example/", "no")) == "https://a.example/: no"
    assert trouble(Trouble("q", None, None, "no")) == "search 'q': no"
