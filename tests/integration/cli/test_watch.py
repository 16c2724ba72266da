"""`penstock jobs watch`."""

import signal

import pytest

from penstock.cli import watch
from penstock.errors import QueueUnavailable
from tests.support.cli import Cli

NOBODY = "0" * 32


def test_watching_ends_with_the_jobs(cli: Cli) -> None:
    ids = [cli.enqueue("add"), cli.enqueue("mail.send")]
    watching = cli.start("jobs", "watch", *ids)
    watching.said("queued")
    cli("worker", "shop:app", "--drain")
    done = watching.end()
    assert done.code == 0
    last = {line.split()[0]: line.split()[2] for line in done.out.splitlines()}
    assert last == dict.fromkeys(ids, "completed")
    assert done.out.isascii()


def test_progress_is_a_line(cli: Cli) -> None:
    cli.worker()
    watching = cli.start("jobs", "watch", cli.enqueue("hold"))
    watching.said("50% half way")
    (cli.folder / "gate").touch()
    assert watching.end().out.splitlines()[-1].split()[2] == "completed"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_job_that_fails_is_exit_code_1(cli: Cli, form: list[str]) -> None:
    good, bad = cli.enqueue("add"), cli.enqueue("fail")
    cli("worker", "shop:app", "--drain")
    done = cli("jobs", "watch", good, bad, *form, code=1)
    assert "ValueError" in done.out.splitlines()[-1]
    assert cli("jobs", "watch", good, *form).code == 0


def test_json_is_an_object_a_line_without_payloads(cli: Cli) -> None:
    job_id = cli.enqueue("mail.send", {"to": "secret@example.org"})
    watching = cli.start("jobs", "watch", job_id, "--json")
    watching.said('"queued"')
    cli("worker", "shop:app", "--drain")
    done = watching.end()
    assert [line["id"] for line in done.lines] == [job_id] * len(done.lines)
    assert done.lines[0]["state"] == "queued"
    assert done.lines[-1]["state"] == "completed"
    assert "secret" not in done.out


def test_a_missing_job_is_exit_code_3_at_once(cli: Cli) -> None:
    job_id = cli.enqueue("add")
    assert NOBODY in cli("jobs", "watch", job_id, NOBODY, code=3).err


def test_counts_until_idle(cli: Cli) -> None:
    for _ in range(3):
        cli.enqueue("add")
    watching = cli.start("jobs", "watch", "--until-idle", "--json")
    watching.said('"queued": 3')
    cli("worker", "shop:app", "--drain")
    done = watching.end()
    assert done.code == 0
    assert done.lines[-1] == {
        "queued": 0,
        "running": 0,
        "completed": 3,
        "failed": 0,
        "cancelled": 0,
    }
    last = cli("jobs", "watch", "--until-idle").out
    assert last == "queued 0  running 0  completed 3  failed 0  cancelled 0\n"


def test_counts_go_on_until_interrupted(cli: Cli) -> None:
    cli.enqueue("add")
    watching = cli.start("jobs", "watch")
    watching.said("queued 1")
    cli.enqueue("add")
    watching.said("queued 2")
    watching.send(signal.SIGINT)
    done = watching.end()
    assert done.code == 130
    assert done.err == "interrupted\n"


def test_until_idle_goes_without_ids(cli: Cli) -> None:
    assert "--until-idle" in cli("jobs", "watch", NOBODY, "--until-idle", code=2).err


def test_a_terminal_sees_bars(cli: Cli) -> None:
    ids = [cli.enqueue("add") for _ in range(3)]
    cli("worker", "shop:app", "--drain")
    shown = cli.on_terminal("jobs", "watch", *ids)
    assert "━" in shown
    assert "3 jobs: 3 completed" in shown
    assert "completed" in cli.on_terminal("jobs", "watch", "--until-idle")


async def test_a_queue_that_is_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "UNAVAILABLE_SECONDS", 0.0)
    answers: list[int | Exception] = [QueueUnavailable("locked"), QueueUnavailable("locked"), 42]

    async def look() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await anext(watch.looks(look)) == 42
    assert capsys.readouterr().err == "waiting for the queue: locked\n", "said once"
