"""`penstock tasks`: list, show, stop, resume, export."""

import json

import pytest

from tests.support.cli import Cli
from tests.support.counting_server import Answer
from tests.support.research import ResearchSite
from tests.support.research_config import configure

NOBODY = "0" * 32


@pytest.fixture
def cli(cli: Cli, library_site: ResearchSite) -> Cli:
    configure(cli, library_site)
    return cli


def queued(cli: Cli, question: str = "water wheels") -> str:
    """The id of a task that nobody works on yet."""
    return cli("research", question, "--no-watch").out.strip()


def fields(shown: str) -> dict[str, str]:
    """The labelled values at the top."""
    pairs = (line.split("  ", 1) for line in shown.split("\n\n")[0].splitlines())
    return {label: value.strip() for label, value in pairs}


def test_tasks_are_listed_the_newest_first(cli: Cli) -> None:
    ids = [queued(cli, f"question {n}") for n in range(3)]
    cli("tasks", "stop", ids[0])
    listed = cli("tasks", "list", "--json").json
    assert [one["task_id"] for one in listed] == ids[::-1]
    assert [one["status"] for one in listed] == ["running", "running", "paused"]
    done = cli("tasks", "list", "--limit", "2")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["ID", "STATUS", "SEARCHES", "AGE", "QUESTION"]
    assert [row[0] for row in rows[1:]] == ids[:0:-1]
    assert f"--before {ids[1]}" in done.err
    assert ids[0] in cli("tasks", "list", "--before", ids[1]).out
    assert cli("tasks", "list", "--tenant", "kim").err == "no tasks\n"


def test_a_task_is_shown_with_its_results_and_errors(cli: Cli, library_site: ResearchSite) -> None:
    library_site.answers["/page/1"] = Answer(404)
    task_id = queued(cli)
    before = fields(cli("tasks", "show", task_id).out)
    assert before["status"] == "running"
    assert before["waiting for"]
    cli("worker", "--drain")
    shown = cli("tasks", "show", task_id).out
    told = fields(shown)
    assert (told["id"], told["question"]) == (task_id, "water wheels")
    assert (told["status"], told["searches"]) == ("completed", "1/1 done")
    assert told["results"] == "3, 2 of them read"
    assert "1. Work 0 (2024)  read\n" in shown
    assert "Work 1 (2024)  read failed\n" in shown
    assert f"  {library_site.page_url(1)}: " in shown
    part = cli("tasks", "show", task_id, "--limit", "2")
    assert "--cursor 2" in part.err
    rest = cli("tasks", "show", task_id, "--cursor", "2", "--json").json
    assert len(rest["results"]) == 1


def test_a_stopped_task_goes_on_when_it_is_resumed(cli: Cli) -> None:
    task_id = queued(cli)
    stopped = cli("tasks", "stop", task_id)
    assert stopped.out == "paused  0/1 searches done, 1 job cancelled\n"
    assert f"penstock tasks resume {task_id}" in stopped.err
    assert cli("tasks", "stop", task_id, "--now", "--json").json["status"] == "paused"
    resumed = cli("tasks", "resume", task_id, "--json").json
    assert (resumed["status"], resumed["queued"]) == ("running", 1)
    done = cli("tasks", "resume", task_id, "--watch", "--json").lines
    assert (done[0]["event"], done[0]["queued"]) == ("resumed", 0)
    assert (done[-1]["event"], done[-1]["status"]) == ("summary", "completed")
    assert cli("tasks", "stop", task_id, "--json").json["resumable"] is False


def test_a_task_is_written_in_each_format(cli: Cli) -> None:
    task_id = cli("research", "water wheels", "--watch", "--json").lines[0]["task_id"]
    assert cli("tasks", "export", task_id).out.startswith("# water wheels\n")
    bibtex = cli("tasks", "export", task_id, "--format", "bibtex").out
    assert bibtex.count("@article{") == 3
    whole = cli("tasks", "export", task_id, "--json").json
    assert whole == json.loads(cli("tasks", "export", task_id, "--format", "json").out)
    assert len(whole["results"]) == 3
    done = cli("tasks", "export", task_id, "--format", "bibtex", "-o", "wheels.bib")
    assert done.out == ""
    assert (cli.folder / "wheels.bib").read_text() == bibtex
    assert (cli.folder / "wheels.bib").stat().st_mode & 0o777 == 0o600
    refused = cli("tasks", "export", task_id, "-o", "no/such/folder/x.md", code=2)
    assert "cannot write no/such/folder/x.md: No such file" in refused.err
    both = cli("tasks", "export", task_id, "--json", "--format", "bibtex", code=2)
    assert "--json means --format json" in both.error["message"]


@pytest.mark.parametrize("command", ["show", "stop", "resume", "export"])
def test_a_task_that_is_not_there_is_exit_code_3(cli: Cli, command: str) -> None:
    task_id = queued(cli)
    assert f"no task '{NOBODY}'" in cli("tasks", command, NOBODY, code=3).err
    other = cli("tasks", command, task_id, "--tenant", "kim", "--json", code=3)
    assert other.error["type"] == "TaskNotFound"
