"""What all commands have in common: help, exit codes, errors, where the queue is."""

import json
import os
import resource
import subprocess
import sys

import pytest

from penstock import __version__
from tests.support.cli import COMMAND, Cli

NOBODY = "0" * 32

READ_COMMANDS = [
    ["jobs", "list"],
    ["jobs", "show", NOBODY],
    ["jobs", "cancel", NOBODY],
    ["jobs", "watch", "--until-idle"],
    ["dead-letters", "list"],
    ["dead-letters", "show", NOBODY],
    ["dead-letters", "redrive", "--all"],
    ["dead-letters", "discard", "--all", "--yes"],
    ["lanes"],
    ["lanes", "pause", "embedder"],
    ["keys", "list"],
    ["keys", "revoke", NOBODY],
    ["tasks", "list"],
    ["tasks", "show", NOBODY],
    ["tasks", "stop", NOBODY],
    ["tasks", "resume", NOBODY],
    ["tasks", "export", NOBODY],
    ["status"],
]


def test_help_names_every_command_and_exit_code(cli: Cli) -> None:
    shown = cli("--help").out
    commands = "worker enqueue jobs dead-letters lanes ingest search documents keys status config"
    for word in [*commands.split(), "research", "tasks"]:
        assert f"\n  {word} " in shown
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 "):
        assert f"\n    {code}" in shown
    assert cli().out == shown, "without a command the help is shown"


def test_help_comes_quickly() -> None:
    """Counted in CPU, which does not depend on what else the machine does."""
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*COMMAND, "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 1.0, "the target is 0.2 s"


def test_help_does_not_load_what_it_does_not_need() -> None:
    script = (
        "import sys; from penstock.cli import main; main(['--help']);"
        "heavy = {'rich', 'pydantic', 'sqlite3', 'yaml', 'asyncpg', 'redis', 'numpy', 'httpx2'};"
        "sys.exit(' '.join(heavy & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ended.stderr.decode().strip() == ""


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"penstock {__version__}\n"


def test_a_wrong_option_is_one_line_that_says_where_the_help_is(cli: Cli) -> None:
    done = cli("jobs", "list", "--stat", "queued", code=2)
    assert done.out == ""
    assert done.err.startswith("error: no such option: --stat")
    assert "penstock jobs list --help" in done.err
    assert done.err.count("\n") == 1


def test_a_wrong_value_names_the_right_ones(cli: Cli) -> None:
    done = cli("jobs", "list", "--state", "done", code=2)
    assert done.err.startswith("error: ")
    assert "--state" in done.err
    assert "completed" in done.err


def test_a_mistyped_command_is_corrected(cli: Cli) -> None:
    assert "enqueue" in cli("enqueu", "add", code=2).err


def test_errors_are_json_with_json(cli: Cli) -> None:
    done = cli("jobs", "list", "--json", "--limit", "0", code=2)
    assert done.out == ""
    assert done.error["type"] == "UsageError"
    assert "--limit" in done.error["message"]


@pytest.mark.parametrize("command", READ_COMMANDS, ids=" ".join)
def test_reading_does_not_make_a_queue(cli: Cli, command: list[str]) -> None:
    done = cli(*command, "--json", code=3)
    assert done.out == ""
    assert done.error["type"] == "QueueMissing"
    assert f"no queue at {cli.path}" in done.error["message"]
    assert sorted(path.name for path in cli.folder.iterdir()) == ["shop.py"]


def test_a_missing_queue_says_what_to_do(cli: Cli) -> None:
    done = cli("status", code=3)
    assert done.err.startswith(f"error: no queue at {cli.path}; nothing has been enqueued yet")
    assert "--queue" in done.err


@pytest.mark.parametrize("command", [["status"], ["enqueue", "add"]], ids=" ".join)
def test_a_file_that_is_no_queue_is_exit_code_4(cli: Cli, command: list[str]) -> None:
    cli.path.write_text("this is not a database, and long enough to be looked at" * 20)
    done = cli(*command, code=4)
    assert done.err.startswith("error: ")
    assert "not a SQLite file" in done.err


def test_a_folder_that_does_not_exist_is_exit_code_4(cli: Cli) -> None:
    done = cli("enqueue", "add", "--queue", "sqlite:///no/such/folder/jobs.db", code=4)
    assert "no/such/folder" in done.err


def test_an_unknown_kind_of_queue_is_exit_code_2(cli: Cli) -> None:
    assert "sqlite:///" in cli("status", "--queue", "carrier-pigeon://coop", code=2).err


def test_queue_option_wins_over_environment_over_file(cli: Cli) -> None:
    (cli.folder / "penstock.yaml").write_text("queue: sqlite:///from-file.db\n")
    (cli.folder / "other.yaml").write_text("queue: sqlite:///from-other.db\n")
    nowhere = {"PENSTOCK_QUEUE": ""}
    cli("enqueue", "add", environment=nowhere)
    cli("enqueue", "add", "--config", "other.yaml", environment=nowhere)
    cli("enqueue", "add", environment={"PENSTOCK_QUEUE": "sqlite:///from-environment.db"})
    cli("enqueue", "add", "--queue", "sqlite:///from-option.db")
    made = {path.name for path in cli.folder.glob("*.db")}
    assert made == {"from-file.db", "from-other.db", "from-environment.db", "from-option.db"}


def test_options_of_all_commands_may_stand_before_the_command(cli: Cli) -> None:
    nowhere = {"PENSTOCK_QUEUE": "sqlite:///nowhere.db"}
    job_id = cli.enqueue("add")
    assert cli("--queue", cli.url, "status", environment=nowhere).out.startswith("queue  ")
    listed = cli("--json", "--queue", cli.url, "jobs", "list", environment=nowhere).json
    assert [job["id"] for job in listed] == [job_id]
    (cli.folder / "other.yaml").write_text(f"queue: {cli.url}\n")
    assert cli("--config", "other.yaml", "status", environment={"PENSTOCK_QUEUE": ""}).out
    assert cli("--json", "jobs", "list", "--limit", "0", code=2).error["type"] == "UsageError"


def test_config_tells_values_and_sources(cli: Cli) -> None:
    (cli.folder / "penstock.yaml").write_text("engine:\n  max_workers: 3\n")
    environment = {
        "PENSTOCK_QUEUE": "postgres://me:hunter2@db/jobs",
        "PENSTOCK_GRACE_SECONDS": "7.5",
        "PENSTOCK_DURABLE": "",
    }
    rows = {
        row["name"]: (row["value"], row["source"])
        for row in cli("config", "--json", environment=environment).json
    }
    assert rows["queue"] == ("postgres://me:***@db/jobs", "environment PENSTOCK_QUEUE")
    assert rows["engine.max_workers"] == (3, "penstock.yaml line 2")
    assert rows["engine.grace_seconds"] == (7.5, "environment PENSTOCK_GRACE_SECONDS")
    assert rows["engine.durable"] == (True, "default")

    shown = cli("config", environment=environment).out
    assert "hunter2" not in shown
    assert "penstock.yaml line 2" in shown
    assert ["engine.durable", "true", "default"] in [line.split() for line in shown.splitlines()]


def test_config_tells_what_is_said_of_lanes_and_tenants(cli: Cli) -> None:
    text = "lanes:\n  api:\n    max_parallel: 3\ntenant_weights:\n  gold: 2\n"
    (cli.folder / "penstock.yaml").write_text(text)
    rows = {row["name"]: row for row in cli("config", "--json").json}

    assert rows["lanes.api.max_parallel"]["value"] == 3
    assert "penstock.yaml line" in rows["lanes.api.max_parallel"]["source"]
    assert rows["tenant_weights.gold"]["value"] == 2.0


def test_config_warns_of_a_model_that_gets_unmasked_pages(cli: Cli) -> None:
    text = (
        "documents: {scans: model}\n"
        "llm:\n  base_url: http://localhost:1/v1\n  models: {ingest: looker}\n"
    )
    (cli.folder / "penstock.yaml").write_text(text)
    for options in ([], ["--json"]):
        done = cli("config", *options)
        assert "warning: scans: model sends pages without text to http://localhost:1" in done.err
        assert "looker" in done.out


def test_config_with_a_wrong_setting_says_which(cli: Cli) -> None:
    (cli.folder / "penstock.yaml").write_text("max_worker: 3\n")
    done = cli("config", code=2)
    assert "did you mean max_workers?" in done.err


def test_no_escape_codes_and_boxes_where_there_is_no_terminal(cli: Cli) -> None:
    cli.enqueue("add")
    for command in (["jobs", "list"], ["status"], ["config"]):
        assert cli(*command).out.isascii()
        assert "\x1b" not in cli(*command).out


def test_a_terminal_gets_colours_unless_it_does_not_want_them(cli: Cli) -> None:
    cli.enqueue("add")
    shown = cli.on_terminal("jobs", "list")
    assert "\x1b[" in shown
    assert "─" in shown
    plain = cli.on_terminal("jobs", "list", environment={"NO_COLOR": "1"})
    assert "queued" in plain
    assert "\x1b" not in plain
    assert "─" not in plain


def test_what_a_terminal_would_obey_is_not_printed(cli: Cli) -> None:
    job_id = cli.enqueue("add", {"a": "\x1b[2J\u009b", "b": "[bold]plain[/bold]"})
    shown = cli("jobs", "show", job_id).out
    assert "\x1b" not in shown
    assert "\u009b" not in shown
    assert "[bold]plain[/bold]" in shown


def test_a_terminal_that_knows_only_ascii_is_no_reason_to_fail(cli: Cli) -> None:
    job_id = cli.enqueue("add", {"a": "Grüße"})
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert "Gr\\xfc\\xdfe" in cli("jobs", "show", job_id, environment=environment).out
    payload = cli("jobs", "show", job_id, "--json", environment=environment).json["payload"]
    assert payload == {"a": "Grüße"}


def test_a_reader_that_leaves_is_no_error(cli: Cli) -> None:
    cli.enqueue("add")
    ours, theirs = os.pipe()
    os.close(ours)  # before it can write
    command = [*COMMAND, "jobs", "list"]
    ended = subprocess.run(
        command, cwd=cli.folder, env=cli.environment, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_json_of_a_list_is_one_array(cli: Cli) -> None:
    ids = [cli.enqueue("add") for _ in range(2)]
    assert [job["id"] for job in json.loads(cli("jobs", "list", "--json").out)] == ids[::-1]
