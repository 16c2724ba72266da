"""`penstock research`: a question, its progress, and what was found."""

import re
import signal

import pytest

from tests.support.cli import Cli, wait_until
from tests.support.counting_server import Answer
from tests.support.research import ResearchSite
from tests.support.research_config import PATIENT, configure


@pytest.fixture
def cli(cli: Cli, library_site: ResearchSite) -> Cli:
    configure(cli, library_site)
    return cli


def test_a_question_is_searched_for_here_and_told_in_lines(cli: Cli) -> None:
    done = cli("research", "water wheels", "--watch")
    lines = done.out.splitlines()
    assert re.search(r"^(queued |running)    search 1: water wheels$", done.out, re.M), done.out
    assert "completed  search 1: water wheels  3 results" in lines
    assert any(line.startswith("read       Work 0 (2024)  http://127.0.0.1:") for line in lines)
    listed = done.out.split("\n\n")[1].splitlines()
    assert len(listed) == 9
    assert [line for line in listed if line.endswith("  read")] == listed[::3]
    assert listed[1].startswith("     http://127.0.0.1:")
    assert listed[2].startswith("     Ada Byron; found by openalex")
    assert lines[-2] == "completed  1/1 searches, results: 3, 3 of them read"
    assert "\x1b" not in done.out
    task_id = lines[-1].removeprefix("task ")
    assert done.err.startswith(f"task {task_id}: 1 search, about ")


def test_queries_providers_and_budgets_are_those_given(
    cli: Cli, library_site: ResearchSite
) -> None:
    library_site.shelves = {"": range(3), "mills": range(3, 9)}
    options = ["--query", "wheels", "--query", "mills", "--provider", "searxng"]
    limits = ["--max-results", "4", "--budget-pages", "2", "--budget-seconds", "100"]
    told = cli("research", "Wheels?", *options, *limits, "--watch", "--json").lines
    assert told[0]["event"] == "queued"
    assert told[0]["queued"] == 2
    assert told[-1] == {
        "event": "summary",
        "task_id": told[0]["task_id"],
        "status": "completed",
        "progress": "2/2",
        "results": 7,
        "read": 2,
        "errors": told[-1]["errors"],
        "interrupted": False,
    }
    assert {one["event"] for one in told} >= {"search", "result", "error"}
    assert library_site.asked("openalex") == []
    assert len(library_site.pages_hit()) == 2
    shown = cli("tasks", "show", told[0]["task_id"], "--json").json
    assert shown["question"] == "Wheels?"
    assert [one["query"] for one in shown["searches"]] == ["wheels", "mills"]
    assert (shown["budget"]["pages"], shown["budget"]["seconds"]) == (2, 100)


def test_without_a_terminal_it_is_only_queued(cli: Cli, library_site: ResearchSite) -> None:
    done = cli("research", "water wheels", "--priority", "high")
    task_id = done.out.strip()
    assert len(task_id) == 32, "the id and nothing else"
    assert f"penstock tasks resume {task_id} --watch" in done.err
    queued = cli("research", "mills", "--no-watch", "--json").json
    assert (queued["event"], queued["queued"]) == ("queued", 1)
    assert library_site.hits == []
    cli("worker", "--drain")
    listed = cli("tasks", "list", "--json").json
    assert {one["status"] for one in listed} == {"completed"}


def test_one_whose_searches_all_fail_is_exit_code_1(cli: Cli, library_site: ResearchSite) -> None:
    library_site.faults = dict.fromkeys(("openalex", "searxng"), Answer(400))
    done = cli("research", "water wheels", "--watch", code=1)
    assert "failed     search 1: water wheels" in done.out
    assert "error      openalex: " in done.out
    assert "errors; the other searches continued" in done.out
    assert "\nfailed  1/1 searches" in done.out


def test_what_cannot_be_reached_is_said_at_once(cli: Cli, library_site: ResearchSite) -> None:
    configure(cli, library_site, **PATIENT)
    library_site.down()
    running = cli.start("research", "water wheels", "--watch")
    running.said(f"cannot reach 127.0.0.1:{library_site.port}")
    running.send(signal.SIGINT)
    assert running.end().code == 130, "said before it gave up, which would be 1"


def test_ctrl_c_leaves_it_and_says_how_to_go_on(cli: Cli, library_site: ResearchSite) -> None:
    library_site.faults = dict.fromkeys(("openalex", "searxng"), Answer(hang=True))
    running = cli.start("research", "water wheels", "--watch")
    wait_until(lambda: bool(library_site.hits), "a provider to be asked")
    running.send(signal.SIGINT)
    done = running.end()
    assert done.code == 130
    assert "Traceback" not in done.err
    (task,) = cli("tasks", "list", "--json").json
    assert (task["status"], task["progress"]) == ("running", "0/1")
    resume = f"penstock tasks resume {task['task_id']} --watch"
    assert "no other worker continues it" in done.err
    assert resume in done.err
    assert f"penstock tasks show {task['task_id']}" in done.err
    library_site.faults.clear()
    again = cli(*resume.split()[1:])
    assert again.out.splitlines()[-2] == "completed  1/1 searches, results: 3, 3 of them read"


def test_ctrl_c_says_that_others_go_on(cli: Cli, library_site: ResearchSite) -> None:
    library_site.faults = dict.fromkeys(("openalex", "searxng"), Answer(hang=True))
    worker = cli.start("worker")
    worker.said("penstock worker")
    for form, says in ((), "other workers continue it"), (("--json",), '"interrupted": true'):
        question = f"wheels{len(form)}"
        running = cli.start("research", question, "--watch", *form)

        def asked(question: str = question) -> bool:
            # Of this one: what was asked before goes on.
            return any(question in hit.query for hit in list(library_site.hits))

        wait_until(asked, "a provider to be asked")
        running.send(signal.SIGINT)
        done = running.end()
        assert done.code == 130
        assert says in done.out + done.err


def test_one_that_is_stopped_elsewhere_ends_with_code_1(
    cli: Cli, library_site: ResearchSite
) -> None:
    library_site.faults = dict.fromkeys(("openalex", "searxng"), Answer(hang=True))
    running = cli.start("research", "water wheels", "--watch")
    wait_until(lambda: bool(library_site.hits), "a provider to be asked")
    (task,) = cli("tasks", "list", "--json").json
    cli("tasks", "stop", task["task_id"], "--now")
    done = running.end()
    assert done.code == 1
    assert "paused  0/1 searches" in done.out
    assert f"penstock tasks resume {task['task_id']} --watch" in done.err


def test_a_terminal_sees_how_it_goes_and_a_list(cli: Cli, library_site: ResearchSite) -> None:
    library_site.page_delay = 0.3
    shown = cli.on_terminal("research", "water wheels", "--budget-pages", "2")
    for text in ("running", "3 found", "budget:", "Ctrl-C stops watching", "of them read"):
        assert text in shown
    assert shown.rindex("Ctrl-C") < shown.index("Work 0 (2024)", shown.rindex("Ctrl-C"))
    plain = cli.on_terminal("research", "mills", "--watch", environment={"NO_COLOR": "1"})
    assert "\x1b" not in plain


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([" "], "a query must be 1 to"),
        ([" ", "--query", "x"], "a question must be 1 to"),
        (["x", "--provider", "altavista"], "there are: openalex"),
        (["x", "--query", " "], "a query must be 1 to"),
        (["x", "--max-results", "101"], "max_results must be 1 to 100"),
        (["x", "--budget-seconds", "0"], "budget_seconds"),
        (["x", "--priority", "urgent"], "--priority"),
    ],
)
def test_wrong_usage_is_said_and_makes_no_task(cli: Cli, arguments: list[str], says: str) -> None:
    done = cli("research", *arguments, code=2)
    assert says in done.err
    assert done.err.count("\n") == 1
    if cli.path.exists():
        assert cli("tasks", "list", "--json").json == []
