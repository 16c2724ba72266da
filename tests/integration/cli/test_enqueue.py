"""`penstock enqueue`."""

import json
import os
import select
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock import Penstock, Priority
from tests.support.cli import Cli, wait_until


def write_lines(path: Path, *lines: object) -> str:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path.name


def stored(cli: Cli) -> list[dict[str, object]]:
    """The payloads in the queue, oldest first."""
    app = Penstock(cli.url)
    return [job.payload for job in cli.call(app.jobs(limit=10_000), app)][::-1]


def test_prints_the_id_and_nothing_else(cli: Cli) -> None:
    done = cli("enqueue", "add", '{"a": 5}')
    assert cli.job(done.out.strip()).payload == {"a": 5}
    assert done.out.count("\n") == 1
    assert done.err == ""


def test_a_queue_that_nobody_named_is_not_created_without_a_word(cli: Cli) -> None:
    nobody = {"PENSTOCK_QUEUE": ""}
    done = cli("enqueue", "add", environment=nobody)
    assert done.err.startswith("created a new queue, penstock.db. If your app uses another, ")
    assert done.out.count("\n") == 1
    assert cli("enqueue", "add", environment=nobody).err == ""


def test_without_a_payload_it_is_empty(cli: Cli) -> None:
    assert cli("enqueue", "add", "--json").json["payload"] == {}


def test_bursts_become_one_job(cli: Cli) -> None:
    late = ("--debounce", "3600", "--debounce-key", "user:7", "--json")
    first = cli("enqueue", "add", '{"a": 1}', *late).json
    again = cli("enqueue", "add", '{"a": 2}', *late, "--max-wait", "7200").json
    assert (again["id"], again["payload"]) == (first["id"], {"a": 2})
    shown = cli("jobs", "show", first["id"]).out
    assert "user:7" in shown
    assert "(debounced)" in shown
    once = ("enqueue", "add", '{"a": 1}', "--unique-for", "3600")
    assert cli(*once).out == cli(*once).out != cli(*once, "--unique-key", "mine").out
    assert "debounce needs a debounce_key" in cli("enqueue", "add", "--debounce", "5", code=2).err


def test_options_reach_the_job(cli: Cli) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    begun = time.time()
    job = cli(
        *("enqueue", "add", "--json", "--key", "k", "--priority", "high", "--tenant", "acme"),
        *("--log", "t1", "--delay", "60", "--deadline", later.isoformat()),
        *("--job-timeout", "7.5", "--max-retries", "0"),
    ).json
    found = cli.job(job["id"])
    assert (found.key, found.priority, found.tenant) == ("k", Priority.HIGH, "acme")
    assert found.log == "t1"
    assert begun - 0.1 <= found.run_at - 60 <= time.time() + 0.1
    assert found.deadline == pytest.approx(later.timestamp())
    assert (found.timeout, found.max_retries) == (7.5, 0)


def test_a_time_without_a_zone_is_local(cli: Cli) -> None:
    environment = {"TZ": "Asia/Tokyo"}
    job = cli(
        "enqueue", "add", "--json", "--run-at", "2040-01-31T09:00", environment=environment
    ).json
    assert job["run_at"] == datetime(2040, 1, 31, 0, 0, tzinfo=UTC).timestamp()


def test_the_same_key_gives_the_same_job(cli: Cli) -> None:
    first = cli("enqueue", "add", '{"a": 1}', "--key", "k").out
    assert cli("enqueue", "add", '{"a": 1}', "--key", "k").out == first
    done = cli("enqueue", "add", '{"a": 2}', "--key", "k", "--json", code=2)
    assert done.error["type"] == "KeyConflict"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "{"], "payload: not JSON"),
        (["add", "[1]"], "not list"),
        (["add", "null"], "not null"),
        (["add", '{"a": NaN}'], "not JSON"),
        (["no kind"], "no kind"),
        (["add", "--run-at", "tomorrow"], "--run-at must be a time such as"),
        (["add", "--delay", "-1"], "--delay"),
        (["add", "--delay", "1", "--run-at", "2040-01-31"], "not both"),
        (["add", "--priority", "urgent"], "'high', 'medium', 'low'"),
        (["add", "--timeout", "1"], "--wait"),
        (["add", "{}", "--from", "x.jsonl"], "--from"),
        (["add", "--keyed"], "--keyed"),
        (["add", "--from", "no-such-file.jsonl"], "cannot read no-such-file.jsonl"),
    ],
)
def test_wrong_input_stores_nothing(cli: Cli, arguments: list[str], says: str) -> None:
    done = cli("enqueue", *arguments, code=2)
    assert says in done.err
    assert done.err.startswith("error: ")
    assert done.out == ""
    assert not cli.path.exists() or stored(cli) == []


def test_a_payload_over_the_limit_is_refused(cli: Cli) -> None:
    lines = write_lines(cli.folder / "big.jsonl", {"a": 1}, {"a": "x" * 300_000})
    done = cli("enqueue", "add", "--from", lines, "--json", code=2)
    assert done.error["message"].startswith("line 2: payload is 300,008 bytes")


def test_a_file_is_stored_in_order(cli: Cli) -> None:
    payloads = [{"a": n} for n in range(2500)]
    lines = write_lines(cli.folder / "jobs.jsonl", *payloads[:1200], "", *payloads[1200:])
    assert cli("enqueue", "add", "--from", lines).out == "stored 2,500 jobs of kind add\n"
    assert stored(cli) == payloads


def test_standard_input_is_a_file_too(cli: Cli) -> None:
    done = cli("enqueue", "add", "--from", "-", "--json", stdin='{"a": 1}\n{"a": 2}').json
    assert done["stored"] == 2
    assert [cli.job(job_id).payload for job_id in done["ids"]] == [{"a": 1}, {"a": 2}]


def test_a_bad_line_is_named_and_those_before_it_are_stored(cli: Cli) -> None:
    lines = write_lines(
        cli.folder / "jobs.jsonl", *({"a": n} for n in range(1003)), "{oops", {"a": 1}
    )
    done = cli("enqueue", "add", "--from", lines, code=2)
    assert done.err.startswith("error: line 1004: not JSON")
    assert done.err.endswith("stored: 1,003 jobs\n")
    assert done.out == ""
    assert len(stored(cli)) == 1003


def test_a_bad_first_line_stores_nothing(cli: Cli) -> None:
    done = cli("enqueue", "add", "--from", "-", stdin="[1]\n{}\n", code=2)
    assert "line 1: " in done.err
    assert done.err.endswith("stored: nothing\n")
    assert stored(cli) == []


def test_keyed_lines_can_be_given_twice(cli: Cli) -> None:
    lines = write_lines(
        cli.folder / "jobs.jsonl",
        *({"key": f"k{n}", "payload": {"a": n}} for n in range(3)),
        {"key": "bare"},
    )
    first = cli("enqueue", "add", "--from", lines, "--keyed", "--json").json
    assert cli("enqueue", "add", "--from", lines, "--keyed", "--json").json == first
    assert len(stored(cli)) == 4
    assert cli.job(first["ids"][1]).key == "k1"


@pytest.mark.parametrize("line", ['{"payload": {}}', '{"key": 1}', '{"key": "k", "a": 1}'])
def test_a_keyed_line_without_a_key_is_a_bad_line(cli: Cli, line: str) -> None:
    done = cli("enqueue", "add", "--from", "-", "--keyed", stdin=line, code=2)
    assert 'line 1: with --keyed a line is {"key": "...", "payload": {...}}' in done.err


def test_a_conflicting_key_names_its_line_and_what_was_stored(cli: Cli) -> None:
    rows = [{"key": f"k{n}", "payload": {"a": n}} for n in range(1005)]
    lines = write_lines(cli.folder / "jobs.jsonl", *rows, {"key": "k3", "payload": {"a": 4}})
    done = cli("enqueue", "add", "--from", lines, "--keyed", code=2)
    assert "key 'k3' already belongs" in done.err
    assert "this is line 1006; stored before line 1001: 1,000 jobs" in done.err
    assert len(stored(cli)) == 1000


def test_waiting_shows_the_result(cli: Cli) -> None:
    cli.worker()
    done = cli("enqueue", "add", '{"a": 20, "b": 22}', "--wait")
    job_id, outcome = done.out.splitlines()
    assert cli.job(job_id).result == {"sum": 42}
    assert outcome.startswith("completed in ")
    assert outcome.endswith('{"sum": 42}')
    assert done.err == ""
    job = cli("enqueue", "add", "--wait", "--json").json
    assert (job["state"], job["result"]) == ("completed", {"sum": 3})


def test_waiting_for_a_job_that_fails_is_exit_code_1(cli: Cli) -> None:
    cli.worker()
    done = cli("enqueue", "fail", '{"message": "no luck"}', "--wait", code=1)
    assert done.out.splitlines()[1] == "failed: ValueError: no luck"
    assert cli("enqueue", "fail", "--wait", "--json", code=1).json["state"] == "failed"


def test_waiting_in_vain_says_why(cli: Cli) -> None:
    done = cli("enqueue", "add", "--wait", "--timeout", "0.2", code=1)
    job_id = done.out.strip()
    assert "no worker process handles add" in done.err
    assert f"error: job {job_id} was not finished after 0.2 s" in done.err
    assert cli.job(job_id).state == "queued"


def test_waiting_for_a_file_counts_how_they_ended(cli: Cli) -> None:
    cli.worker()
    done = cli("enqueue", "fail", "--from", "-", "--wait", stdin="{}\n{}\n", code=1)
    assert done.out.splitlines()[:2] == ["stored 2 jobs of kind fail", "2 failed"]
    lines = '{"a": 1}\n{"a": 2}\n{"a": 3}\n'
    found = cli("enqueue", "add", "--from", "-", "--wait", "--json", stdin=lines).json
    assert found["states"] == {"completed": 3}


def test_an_interrupt_tells_how_many_were_stored(cli: Cli) -> None:
    theirs, ours = os.pipe()
    with open(theirs), open(ours, "wb") as pipe:
        enqueuing = cli.start("enqueue", "add", "--from", "-", stdin=theirs)
        pipe.write(b"{}\n" * 1000)
        pipe.flush()
        wait_until(lambda: cli.path.exists() and len(stored(cli)) == 1000, "the first batch")
        pipe.write(b"{}\n" * 500)
        pipe.flush()
        # By then it has also counted them.
        wait_until(lambda: not select.select([theirs], [], [], 0)[0], "the others to be read")
        enqueuing.send(signal.SIGINT)
        done = enqueuing.end()
    assert done.code == 130
    assert done.err == "stored: 1,000 jobs\ninterrupted\n"


def test_a_terminal_sees_progress_while_a_file_is_stored(cli: Cli) -> None:
    lines = write_lines(cli.folder / "jobs.jsonl", *({"a": n} for n in range(1500)))
    shown = cli.on_terminal("enqueue", "add", "--from", lines)
    assert "1,500 jobs stored" in shown
    assert "stored 1,500 jobs of kind add" in shown
