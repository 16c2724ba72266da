"""`penstock status`."""

import os
import signal
import time

from tests.support.cli import Cli, wait_until

BRIEF = {"PENSTOCK_LEASE_SECONDS": "3"}
LONG = {"PENSTOCK_LEASE_SECONDS": "12", "PENSTOCK_GRACE_SECONDS": "60"}
"""What it says of itself is news within 4 s, and good for 8 more."""


def test_counts_per_kind_and_state(cli: Cli) -> None:
    for kind in ("add", "add", "fail", "mail.send"):
        cli.enqueue(kind)
    cli("worker", "shop:app", "--drain", "--kinds", "add,fail")
    lines = [line.split() for line in cli("status").out.splitlines()]
    assert ["KIND", "QUEUED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"] in [
        line[:6] for line in lines
    ]
    assert ["add", "0", "0", "2", "0", "0", "-"] in lines
    assert ["fail", "0", "0", "0", "1", "0", "-"] in lines
    assert ["all", "1", "0", "2", "1", "0"] in lines
    found = cli("status", "--json").json
    assert found["queue"] == cli.url
    assert found["states"] == {
        "queued": 1,
        "running": 0,
        "completed": 2,
        "failed": 1,
        "cancelled": 0,
    }
    assert [kind["kind"] for kind in found["kinds"]] == ["add", "fail", "mail.send"]
    assert 0 < found["oldest_queued_seconds"] < 60


def test_kinds_that_nobody_handles_are_a_warning(cli: Cli) -> None:
    cli.worker("--kinds", "add")
    cli.enqueue("nobody.knows")
    cli.enqueue("mail.send")
    done = cli("status")
    assert "- kind without a worker: mail.send, for " in done.out
    assert "- kind without a worker: nobody.knows, for " in done.out
    assert "1 job waiting: start a worker process with a handler, penstock worker MODULE:APP" in (
        done.out
    )
    assert (done.err, done.code) == ("", 0)
    assert cli("status", "--json").json["unhandled_kinds"] == ["mail.send", "nobody.knows"]
    cli.worker("--kinds", "mail.*")
    wait_until(
        lambda: cli("status", "--json").json["unhandled_kinds"] == ["nobody.knows"],
        "mail.send to be handled",
    )


def test_what_needs_attention_is_the_same_for_programs(cli: Cli) -> None:
    cli.enqueue("fail")
    cli("worker", "shop:app", "--drain")
    cli.enqueue("nobody.knows")
    found = cli("status", "--json").json["attention"]
    assert [(one["what"], one["subject"]) for one in found] == [
        ("kind without a worker", "nobody.knows"),
        ("dead letters", "fail: ValueError"),
    ]
    assert all(one["todo"] and one["since"] < time.time() for one in found)
    (group,) = cli("dead-letters", "groups", "--json").json
    assert (group["kind"], group["error_type"], group["count"]) == ("fail", "ValueError", 1)
    header, row = cli("dead-letters", "groups").out.splitlines()
    assert header.split()[:3] == ["KIND", "ERROR", "COUNT"]
    assert row.split()[:3] == ["fail", "ValueError", "1"]
    assert cli("dead-letters", "groups", "--tenant", "acme").err == "no dead letters match\n"


def test_worker_processes_are_shown(cli: Cli) -> None:
    worker = cli.worker("--kinds", "hold", "--max-workers", "3", environment=LONG)
    cli.enqueue("hold")

    def busy() -> bool:
        (process,) = cli("status", "--json").json["processes"]
        return bool(process["busy"] == 1)

    wait_until(busy, "the heartbeat that says so")
    (process,) = cli("status", "--json").json["processes"]
    assert process["pid"] == worker.process.pid
    assert (process["kinds"], process["max_workers"]) == (["hold"], 3)
    assert process["state"] == "running"
    (row,) = [line for line in cli("status").out.splitlines() if str(process["pid"]) in line]
    assert "1 of 3" in row
    assert os.uname().nodename in row

    worker.send(signal.SIGTERM)
    worker.said("stopping")
    wait_until(
        lambda: cli("status", "--json").json["processes"][0]["state"] == "draining",
        "the heartbeat that says so",
    )
    (cli.folder / "gate").touch()
    assert worker.end().code == 0
    assert cli("status", "--json").json["processes"] == []
    assert "no worker processes" in cli("status").out


def test_a_process_that_stopped_renewing_is_gone(cli: Cli) -> None:
    worker = cli.worker("--kinds", "add", environment=BRIEF)
    worker.send(signal.SIGKILL)
    worker.end()
    cli.enqueue("add")
    wait_until(
        lambda: cli("status", "--json").json["processes"][0]["state"] == "gone", "its lease to end"
    )
    assert cli("status", "--json").json["unhandled_kinds"] == ["add"]
    assert " gone " in cli("status").out


def test_an_empty_queue(cli: Cli) -> None:
    job_id = cli.enqueue("fail")
    cli("worker", "shop:app", "--drain")
    cli("dead-letters", "discard", job_id, "--yes")
    done = cli("status")
    assert "no jobs" in done.out
    assert done.err == ""
    assert cli("status", "--json").json["oldest_queued_seconds"] is None
