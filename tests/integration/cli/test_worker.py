"""`penstock worker`: finding the app, kinds, --drain."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.waiting import PATIENCE


def test_drain_does_everything_and_ends(cli: Cli) -> None:
    ids = [cli.enqueue("add", {"a": n}) for n in range(3)] + [cli.enqueue("fail")]
    done = cli("worker", "shop:app", "--drain")
    assert [str(cli.job(job_id).state) for job_id in ids] == ["completed"] * 3 + ["failed"]
    assert done.out == ""
    start = done.err.splitlines()[0]
    assert cli.url in start
    assert "4 workers for add, block, " in start


def test_drain_of_an_empty_queue_makes_it_and_ends(cli: Cli) -> None:
    cli("worker", "shop:app", "--drain")
    assert cli("jobs", "list", "--json").json == []


def test_drain_leaves_other_kinds_alone(cli: Cli) -> None:
    add, mail, hold = cli.enqueue("add"), cli.enqueue("mail.send"), cli.enqueue("hold")
    cli("worker", "shop:app", "--drain", "--kinds", "add", "--kinds", "nothing.*, mail.*")
    assert [str(cli.job(i).state) for i in (add, mail, hold)] == [
        "completed",
        "completed",
        "queued",
    ]


def test_drain_waits_for_what_is_due_later(cli: Cli) -> None:
    job_id = cli.enqueue("add", delay=1)
    cli("worker", "shop:app", "--drain")
    assert cli.job(job_id).state == "completed"


def test_kinds_that_match_nothing_are_an_error(cli: Cli) -> None:
    done = cli("worker", "shop:app", "--kinds", "mial.*", code=2)
    assert "no kind matches mial.*" in done.err
    assert "mail.send" in done.err


def test_json_events(cli: Cli) -> None:
    started, stopped = cli("worker", "shop:app", "--drain", "--kinds", "add", "--json").lines
    assert started["event"] == "started"
    assert (started["queue"], started["kinds"]) == (cli.url, ["add"])
    assert started["max_workers"] == 4
    assert stopped == {"event": "stopped", "exit_code": 0}


def test_max_workers_wins_over_the_code(cli: Cli) -> None:
    started, _ = cli("worker", "shop:app", "--drain", "--max-workers", "2", "--json").lines
    assert started["max_workers"] == 2


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("shop", "'shop' is not MODULE:APP"),
        ("shop:", "is not MODULE:APP"),
        ("shop.py:app", "name the module: shop:app"),
        ("./sub/shop.py:app", "name the module: sub.shop:app"),
        ("shpo:app", "no module 'shpo' in "),
        ("shpo:app", "did you mean shop?"),
        ("nowhere.at.all:app", "no module 'nowhere' in "),
        ("shop:ap", "has no 'ap'; did you mean shop:app?"),
        ("shop:not_an_app", "shop:not_an_app is a int, not a Penstock; did you mean shop:app?"),
        ("empty:app", "it holds no Penstock: add `app = Penstock(...)`"),
        ("broken:app", "cannot import 'broken': ZeroDivisionError: division by zero ("),
        ("broken:app", "broken.py line 3)"),
        ("wrong:app", "cannot import 'wrong': SyntaxError:"),
        ("needs:app", "cannot import 'needs': ModuleNotFoundError: No module named 'no_such"),
        ("leaves:app", "cannot import 'leaves': SystemExit: 7"),
        ("idle:app", "register one with @app.job"),
    ],
)
def test_what_is_wrong_with_the_app_is_said(cli: Cli, target: str, says: str) -> None:
    modules = {
        "empty": "",
        "broken": "x = 1\n\ny = x / 0\n",
        "wrong": "def (:\n",
        "needs": "import no_such_module\n",
        "leaves": "import sys\nsys.exit(7)\n",
        "idle": "from penstock import Penstock\napp = Penstock()\n",
    }
    for name, text in modules.items():
        (cli.folder / f"{name}.py").write_text(text)
    done = cli("worker", target, code=2)
    assert says in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_queue_option_reaches_an_app_that_names_none(cli: Cli) -> None:
    other = f"sqlite:///{cli.folder}/other.db"
    started, _ = cli("worker", "shop:app", "--drain", "--json", "--queue", other).lines
    assert started["queue"] == other


def test_queue_option_against_an_app_that_names_its_own_is_an_error(cli: Cli) -> None:
    (cli.folder / "own.py").write_text(
        "from penstock import Penstock\n"
        "app = Penstock('sqlite:///own.db')\n"
        "@app.job('x')\nasync def x(ctx): ...\n"
    )
    done = cli("worker", "own:app", "--queue", "sqlite:///other.db", code=2)
    assert "own:app sets its queue to sqlite:///own.db" in done.err
    assert not (cli.folder / "other.db").exists()
    cli("worker", "own:app", "--drain", "--queue", "sqlite:///own.db")


def test_config_option_reaches_the_app(cli: Cli) -> None:
    (cli.folder / "fast.yaml").write_text("queue: sqlite:///configured.db\n")
    started, _ = cli(
        *("worker", "shop:app", "--drain", "--json", "--config", "fast.yaml"),
        environment={"PENSTOCK_QUEUE": ""},
    ).lines
    assert started["queue"] == "sqlite:///configured.db"


def test_the_installed_command_finds_modules_in_the_current_folder(cli: Cli) -> None:
    command = Path(sys.executable).with_name("penstock")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | cli.environment
    job_id = cli.enqueue("add")
    subprocess.run(
        [command, "worker", "shop:app", "--drain"],
        cwd=cli.folder,
        env=environment,
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert cli.job(job_id).state == "completed"
