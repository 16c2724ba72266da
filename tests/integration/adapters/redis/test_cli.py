"""The command line on a Redis queue: every command as on a file, and no password anywhere."""

from collections.abc import Iterator

import pytest

from tests.support.cli import Cli
from tests.support.database_servers import RedisServer

SECRET = "hush"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = RedisServer("redis", durable=False, requirepass=SECRET).start()
    yield server.url.replace("redis://", f"redis://:{SECRET}@")
    server.remove()


@pytest.fixture
def cli(cli: Cli, url: str) -> Cli:
    cli.url = f"{url}?namespace={cli.folder.name}"
    cli.environment["PENSTOCK_QUEUE"] = cli.url
    return cli


def test_jobs_are_enqueued_run_and_shown(cli: Cli) -> None:
    job = cli("enqueue", "add", '{"a": 1, "b": 2}', "--json").json
    assert "add" in cli("jobs", "list").out
    worker = cli("worker", "shop:app", "--drain")
    status = cli("status")
    shown = cli("jobs", "show", job["id"], "--json").json

    assert (shown["state"], shown["result"]) == ("completed", {"sum": 3})
    for said in (worker.out, worker.err, status.out, status.err, cli("config").out):
        assert SECRET not in said
    assert "namespace=" in status.out


def test_dead_letters_are_listed_redriven_and_discarded(cli: Cli) -> None:
    cli("enqueue", "fail")
    cli("worker", "shop:app", "--drain")
    (dead,) = cli("dead-letters", "list", "--json").json
    assert dead["error"]["type"] == "ValueError"
    cli("dead-letters", "redrive", dead["id"])
    cli("worker", "shop:app", "--drain")
    cli("dead-letters", "discard", dead["id"], "--yes")
    assert cli("dead-letters", "list", "--json").json == []


def test_lanes_can_be_paused_and_resumed(cli: Cli) -> None:
    assert "no queue at" in cli("lanes", code=3).err, "looking makes none"
    cli("enqueue", "add")
    cli("lanes", "pause", "openalex")
    assert "paused" in cli("lanes").out
    cli("lanes", "resume", "openalex")
    assert "paused" not in cli("lanes").out


def test_server_that_is_not_there_is_exit_code_4(cli: Cli) -> None:
    nowhere = f"redis://:{SECRET}@127.0.0.1:1/0"
    done = cli("status", "--queue", nowhere, code=4)
    assert "cannot reach redis://127.0.0.1:1/0" in done.err
    assert SECRET not in done.err
