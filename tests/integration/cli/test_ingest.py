"""`penstock ingest`: files, folders, addresses and standard input become searchable."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from penstock.cli import main
from tests.support.cli import COMMAND, Cli
from tests.support.config_file import config_text
from tests.support.counting_server import Answer, CountingServer
from tests.support.documents import pdf
from tests.support.embedder import EmbedderServer, toy


@pytest.fixture
def quick(cli: Cli, embedder: EmbedderServer, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """With an embedder that need not be loaded, configured in a file elsewhere."""
    file = tmp_path_factory.mktemp("config") / "penstock.yaml"
    file.write_text(config_text({"embedder": toy(embedder)}))
    cli.environment["PENSTOCK_CONFIG"] = str(file)
    return cli


@pytest.fixture
def folder(cli: Cli) -> Path:
    """Two documents, one in a folder of its own, and things that are none."""
    folder = cli.folder / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "sluice.md").write_text(
        "# Sluice\n\nThe sluice opens at dawn. Ask kim@example.com.\n"
    )
    (folder / "old" / "weir.txt").write_text("The weir was built in 1920.")
    (folder / ".hidden.txt").write_text("Nobody asked for this.")
    return folder


def states(cli: Cli) -> dict[str, str]:
    return {one["id"]: one["state"] for one in cli("documents", "list", "--json").json}


def test_a_folder_is_ingested_with_all_below_it_and_again_only_what_changed(
    quick: Cli, folder: Path
) -> None:
    cli = quick
    done = cli("ingest", "papers")
    assert "completed  papers/sluice.md  1 chunk, masked: email 1\n" in done.out
    assert "completed  papers/old/weir.txt  1 chunk\n" in done.out
    assert "completed       2  2 chunks in " in done.out
    assert "hidden" not in done.out
    assert "━" not in done.out, "bars are for terminals"

    (folder / "sluice.md").write_text("The sluice opens at noon.")
    (folder / "new.txt").write_text("The lock keeper sleeps.")
    events = cli("ingest", "papers", "--json").lines
    told = {(one["event"], one["id"]) for one in events if "id" in one}
    assert ("unchanged", "papers/old/weir.txt") in told
    assert {("completed", "papers/sluice.md"), ("completed", "papers/new.txt")} <= told
    assert events[-1] | {"seconds": 0} == {
        "event": "summary",
        "completed": 2,
        "unchanged": 1,
        "failed": 0,
        "deleted": 0,
        "waiting": 0,
        "chunks": 2,
        "masked": {},
        "seconds": 0,
        "interrupted": False,
    }


def test_what_is_wrong_with_a_file_is_said_and_the_rest_is_done(quick: Cli) -> None:
    cli = quick
    (cli.folder / "locked.pdf").write_bytes(pdf(password="secret"))
    (cli.folder / "noise.bin").write_bytes(bytes(range(256)) * 40)
    (cli.folder / "empty.txt").touch()
    (cli.folder / "large.txt").write_bytes(b"x" * 20_001)
    (cli.folder / "good.txt").write_text("The sluice opens at dawn.")
    names = ("locked.pdf", "noise.bin", "empty.txt", "large.txt", "/proc/self/mem", "good.txt")
    limit = {"PENSTOCK_DOCUMENT_BYTES": "20000"}
    done = cli("ingest", *names, code=1, environment=limit)
    for name, why in {
        "locked.pdf": "it is password-protected",
        "noise.bin": "unsupported file type",
        "empty.txt": "the file is empty",
        "large.txt": "over 20,000 bytes",
        "/proc/self/mem": "the file cannot be read: Input/output error",
    }.items():
        assert f"failed     {name}  {why}\n" in done.out
        assert f"  {name}: {why}\n" in done.out.split("\n\n")[1]
    assert "save it without a password" in done.out
    assert "raise the setting document_bytes" in done.out
    assert "completed  good.txt" in done.out
    assert [line for line in done.err.splitlines() if "waiting for" not in line] == []
    assert states(cli) == {
        "locked.pdf": "failed",
        "noise.bin": "failed",
        "empty.txt": "failed",
        "good.txt": "completed",
    }
    again = cli("ingest", "noise.bin", code=1).out
    assert "unsupported file type (unchanged; retry with --retry)\n" in again


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "no file or folder 'nowhere'"),
        (["no*.md"], "no file or folder 'no*.md'"),
        (["shop.py", "nowhere"], "no file or folder 'nowhere'"),
        (["empty"], "no files in 'empty'"),
        (["shop.py", "--exclude", "*.py"], "no files in 'shop.py'"),
        (["-"], "needs an --id"),
        (["shop.py", "nowhere", "--id", "x"], "--id is for a single"),
        (["empty", "--id", "x"], "--id is for a single"),
        (["shop.py", "--metadata", "year"], "--metadata takes KEY=VALUE, not 'year'"),
        (["shop.py", "--watch"], "--watch is for directories"),
        (["empty", "--delete"], "--delete requires --watch"),
        (["http://"], "names no host"),
        (["http://me:secret@example.org/"], "holds a user name or password"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_accepted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "shop.py").touch()
    assert main(["ingest", *arguments, "--queue", "sqlite:///jobs.db"]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not (tmp_path / "jobs.db").exists()


def test_standard_input_titles_and_metadata(cli: Cli) -> None:
    options = ["--id", "note", "--title", "A note", "--metadata", "year=2026", "--metadata", "by="]
    cli("ingest", "-", *options, "--no-wait", stdin="The sluice opens at dawn.")
    shown = cli("documents", "show", "note", "--json").json
    assert (shown["title"], shown["metadata"]) == ("A note", {"year": 2026, "by": ""})
    assert shown["state"] == "processing"


def test_addresses_are_fetched_by_the_workers_within_limits(
    cli: Cli, embedder: EmbedderServer
) -> None:
    with CountingServer() as server:
        page = b"<html><title>Sluices</title><p>The sluice opens at dawn.</p></html>"
        server.answers |= {
            "/page": Answer(body=page),
            "/moved": Answer(301, headers={"location": "/page"}),
            "/gone": Answer(404),
            "/large": Answer(body=b"x" * 20_001),
        }
        at = f"127.0.0.1:{server.port}"
        known = {
            "documents": {"document_bytes": 20000},
            "outbound": {"fetch_allow": [at]},
            "lanes": {"host:*": {"min_interval_seconds": 0.0}},
            "embedder": toy(embedder),
        }
        (cli.folder / "penstock.yaml").write_text(json.dumps(known))
        paths = ("page#top", "moved", "gone", "large")
        urls = [f"http://{at}/{path}" for path in paths]
        refused = "http://127.0.0.1:9/refused"
        done = cli("ingest", *urls, refused, code=1)
        again = cli("ingest", urls[0], "--json").lines
        accepted = cli("ingest", urls[1], "--id", "later", "--no-wait")
        shown = cli("documents", "show", "later", "--json").json
    assert f"completed  http://{at}/page  1 chunk\n" in done.out
    assert f"completed  http://{at}/moved  1 chunk\n" in done.out
    assert f"failed     http://{at}/gone  127.0.0.1: HTTP 404\n" in done.out
    assert f"failed     http://{at}/large  over 20,000 bytes\n" in done.out
    assert f"to fetch it again: penstock documents retry 'http://{at}/gone'" in done.out
    assert f"failed     {refused}  127.0.0.1:9 is not fetched: the port is neither" in done.out
    assert "name it in the setting fetch_allow" in done.out
    busy = ("progress", "waiting")  # the latter where the machine is slow
    assert [one["event"] for one in again if one["event"] not in busy] == [
        *("accepted", "unchanged", "summary"),
    ]
    assert {one["phase"] for one in again if one["event"] == "progress"} <= {"fetch"}
    assert (again[0]["phase"], again[0]["title"]) == ("fetch", "Sluices")
    assert "accepted   later" in accepted.out
    assert (shown["state"], shown["phase"], shown["remote"]) == ("processing", "fetch", True)


def test_accepted_documents_are_done_by_a_worker_without_an_app(cli: Cli, folder: Path) -> None:
    done = cli("ingest", "papers", "--no-wait")
    assert done.out.count("accepted   papers/") == 2
    assert "waiting         2  they are in the queue" in done.out
    worker = cli("worker", "--drain")
    assert "ingest.embed, ingest.fetch, ingest.parse" in worker.err
    assert set(states(cli).values()) == {"completed"}


def test_interrupted_it_ends_soon_and_the_next_run_goes_on(quick: Cli, folder: Path) -> None:
    cli = quick
    cli("ingest", "papers", "--no-wait")
    cli("lanes", "pause", "embedder")
    running = cli.start("ingest", "papers", "--json")
    running.said('"event": "waiting", "waits_for": "')
    running.send(signal.SIGINT)
    done = running.end()
    assert done.code == 130
    assert done.lines[-1]["waiting"] == 2
    assert done.lines[-1]["interrupted"]
    cli("lanes", "resume", "embedder")
    cli("ingest", "papers")  # one may be done before it is given once more
    assert states(cli) == dict.fromkeys(("papers/sluice.md", "papers/old/weir.txt"), "completed")


def test_a_store_that_cannot_be_used_is_exit_code_4(cli: Cli, folder: Path) -> None:
    (cli.folder / "jobs.db-blobs").touch()  # where a folder has to be
    for form in ([], ["--no-wait"]):
        done = cli("ingest", "papers", *form, code=4)
        assert done.err.startswith("error: cannot use the blobs in ")
        assert done.err.count("\n") == 1


def test_a_reader_that_leaves_ends_it(cli: Cli, folder: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    command = [*COMMAND, "ingest", "papers", "--no-wait", "--json"]
    ended = subprocess.run(
        command, cwd=cli.folder, env=cli.environment, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_the_queues_own_files_are_no_documents(cli: Cli) -> None:
    (cli.folder / "shop.py").unlink()
    (cli.folder / "a.txt").write_text("The sluice opens at dawn.")
    done = cli("ingest", ".", "--no-wait")
    done = cli("ingest", ".", "--no-wait")
    assert "jobs.db" not in done.out
    assert list(states(cli)) == ["a.txt"]


def test_a_terminal_sees_bars_and_sums(quick: Cli, folder: Path) -> None:
    cli = quick
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 40)
    shown = cli.on_terminal("ingest", "papers", code=1)
    assert "━" in shown
    assert "of 3" in shown
    assert "unsupported file type" in shown
    assert shown.rindex("━") < shown.index("completed"), "the sums come last"
    plain = cli.on_terminal("ingest", "papers", "--exclude", "*.bin", environment={"NO_COLOR": "1"})
    assert "\x1b" not in plain
