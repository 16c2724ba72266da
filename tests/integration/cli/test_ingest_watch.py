"""`penstock ingest --watch`: a folder is followed, in files that come, change, move and go."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.cli import folders
from penstock.cli.errors import InputError
from penstock.cli.folders import Folders, Found, Gone
from penstock.runtime.inotify import Inotify
from tests.support.cli import Cli, Running, wait_until
from tests.support.waiting import until

WATCH = ("--watch", "--no-wait", "--json")


@pytest.fixture
def folder(cli: Cli) -> Path:
    """Two documents, one in a folder of its own."""
    folder = cli.folder / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "sluice.md").write_text("The sluice opens at dawn.")
    (folder / "old" / "weir.txt").write_text("The weir was built in 1920.")
    return folder


@pytest.fixture(params=["told", "polling"])
def how(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"PENSTOCK_NO_INOTIFY": "1"} if request.param == "polling" else {}


def ids(cli: Cli, *options: str) -> set[str]:
    return {one["id"] for one in cli("documents", "list", "--json", *options).json}


def interrupted(running: Running, code: int = 0) -> dict[str, Any]:
    """Its summary."""
    running.send(signal.SIGINT)
    done = running.end()
    assert done.code == code
    return dict(done.lines[-1])


def test_a_watched_folder_is_followed_until_interrupted(cli: Cli, folder: Path) -> None:
    running = cli.start("ingest", "papers", *WATCH)
    running.said('"papers/sluice.md"')
    (folder / "later.txt").write_text("It came later.")
    running.said('"papers/later.txt"')
    os.utime(folder / "later.txt", (0, 0))  # touched, and the same as before
    (folder / "old" / "weir.txt").write_text("It was built in 1930, not 1920.")
    accepted = '"event": "accepted", "id": "papers/old/weir.txt"'
    wait_until(lambda: running.out.count(accepted) == 2, "the changed file")
    assert interrupted(running)["event"] == "summary"
    assert running.out.count('"event": "accepted", "id": "papers/later.txt"') == 1


def test_documents_go_with_their_files_where_that_is_wanted(
    cli: Cli, folder: Path, how: dict[str, str]
) -> None:
    (folder / "CV of kim@example.com.txt").write_text("A name that is masked.")
    unnamable = folder / ("n" * 240)
    unnamable.write_text("A name that is too long.")
    running = cli.start("ingest", "papers", *WATCH, "--delete", environment=how)
    for name in ("papers/sluice.md", "papers/old/weir.txt", "papers/CV of [EMAIL]"):
        running.said(f'"event": "accepted", "id": "{name}')
    running.said('"event": "failed", "id": "papers/nnn')
    unnamable.unlink()
    (folder / "sluice.md").rename(folder / "gate.md")
    running.said('"event": "accepted", "id": "papers/gate.md"')
    running.said('"event": "deleted", "id": "papers/sluice.md"')
    (folder / "new").mkdir()
    (folder / "new" / "lock.txt").write_text("The lock is closed in winter.")
    (folder / "old").rename(folder / "older")
    running.said('"event": "accepted", "id": "papers/older/weir.txt"')
    running.said('"event": "accepted", "id": "papers/new/lock.txt"')
    running.said('"event": "deleted", "id": "papers/old/weir.txt"')
    (folder / "CV of kim@example.com.txt").unlink()
    running.said('"event": "deleted", "id": "papers/CV of [EMAIL]')
    assert interrupted(running, code=1)["deleted"] == 3
    assert ids(cli) == {"papers/gate.md", "papers/older/weir.txt", "papers/new/lock.txt"}


def test_without_the_flag_nothing_is_deleted(cli: Cli, folder: Path) -> None:
    running = cli.start("ingest", "papers", *WATCH)
    running.said('"papers/old/weir.txt"')
    running.said('"papers/sluice.md"')
    (folder / "sluice.md").unlink()
    (folder / "later.txt").write_text("It came later.")
    running.said('"papers/later.txt"')  # a second after the look that missed the other
    assert interrupted(running)["deleted"] == 0
    assert ids(cli) == {"papers/sluice.md", "papers/later.txt", "papers/old/weir.txt"}


def test_what_went_while_nobody_watched_goes_too_and_nothing_that_was_no_file_here(
    cli: Cli, folder: Path
) -> None:
    (folder / "CV of kim@example.com.txt").write_text("A name that is masked.")
    (cli.folder / "other").mkdir()
    (cli.folder / "other" / "a.txt").write_text("Not in a folder that is watched.")
    cli("ingest", "papers", "other", "--no-wait")
    cli("ingest", "papers", "--collection", "apart", "--no-wait")
    cli("ingest", "-", "--id", "papers/note", "--no-wait", stdin="From standard input.")
    app = Penstock(cli.url, durable=False)
    documents = app.use("documents").documents
    cli.call(documents.add("By a program.", id="papers/made"), app)
    (folder / "sluice.md").unlink()
    (cli.folder / "other" / "a.txt").unlink()

    running = cli.start("ingest", "papers", *WATCH, "--delete")
    running.said('"event": "deleted", "id": "papers/sluice.md"')
    (folder / "last.txt").write_text("What was to be deleted is deleted by now.")
    running.said('"papers/last.txt"')
    assert interrupted(running)["deleted"] == 1
    left = ids(cli, "--collection", "default")
    masked = {name for name in left if name.startswith("papers/CV of [EMAIL]")}
    assert len(masked) == 1
    assert left - masked == {
        "papers/last.txt",
        "papers/made",
        "papers/note",
        "papers/old/weir.txt",
        "other/a.txt",
    }
    assert "papers/sluice.md" in ids(cli, "--collection", "apart")


def test_a_folder_that_is_away_is_waited_for_and_nothing_is_deleted(cli: Cli, folder: Path) -> None:
    running = cli.start("ingest", "papers", *WATCH, "--delete")
    running.said('"papers/old/weir.txt"')
    running.said('"papers/sluice.md"')
    away = folder.rename(cli.folder / "away")
    wait_until(lambda: "waiting: the folder 'papers' is gone" in running.err, "a word of it")
    (away / "later.txt").write_text("It came while the folder was away.")
    away.rename(folder)
    running.said('"papers/later.txt"')
    assert interrupted(running)["deleted"] == 0
    assert len(ids(cli)) == 3


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times at a tenth."""
    for name in ("POLL_SECONDS", "SETTLED_SECONDS"):
        monkeypatch.setattr(folders, name, getattr(folders, name) / 10)


class Looks:
    """What a watch tells, look by look."""

    def __init__(self, watched: Folders) -> None:
        self.all: list[Found | InputError] = []
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._follow(watched))

    async def _follow(self, watched: Folders) -> None:
        async for found in watched.watch(self._stop):
            self.all.append(found)

    def told(self) -> list[str]:
        return [
            f"gone {one.id}" if isinstance(one, Gone) else one.id
            for found in self.all
            if not isinstance(found, InputError)
            for one in found
        ]

    async def end(self) -> None:
        self._stop.set()
        await self._task


@pytest.mark.usefixtures("quick")
async def test_a_file_that_is_replaced_is_not_gone_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folders, "SETTLED_SECONDS", 600.0)
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1, 1))
    looks = Looks(Folders(["."], (), ()))
    await until(lambda: len(looks.told()) == 2, "the files")
    count = len(looks.all)
    (tmp_path / "a").unlink()
    await until(lambda: len(looks.all) > count, "a look that misses it")
    (tmp_path / "a").write_text("a, written anew")
    count = len(looks.all)
    await until(lambda: len(looks.all) > count + 1, "a look that finds it again")
    monkeypatch.setattr(folders, "SETTLED_SECONDS", 0.1)
    await until(lambda: len(looks.told()) == 3, "the file")
    (tmp_path / "b").unlink()
    await until(lambda: "gone b" in looks.told(), "the other to be gone")
    assert looks.told() == ["a", "b", "a", "gone b"]
    await looks.end()


@pytest.mark.usefixtures("quick")
async def test_nothing_of_a_folder_is_gone_while_there_is_no_file_in_it_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk behind a folder is not mounted."""
    monkeypatch.chdir(tmp_path)
    for name in ("in", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "x").write_text("x")
    known = ["in/a", "in/b", "other/y"]
    looks = Looks(Folders(["in", "other"], (), (), known))
    await until(lambda: len(looks.told()) == 2, "what is there and gone of the other folder")
    (tmp_path / "in" / "a").write_text("a")
    await until(lambda: len(looks.told()) == 4, "it to be there and the other to be gone")
    assert sorted(looks.told()[:2]) == ["gone other/y", "other/x"]
    assert sorted(looks.told()[2:]) == ["gone in/b", "in/a"]
    await looks.end()


@pytest.mark.usefixtures("quick")
async def test_nobody_looks_while_only_the_queues_own_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    looks = Looks(Folders(["."], (), [tmp_path / "jobs.db"]))
    await until(lambda: looks.all, "the first look")
    for _ in range(20):
        (tmp_path / "jobs.db-wal").write_text("x")
        (tmp_path / ".hidden").write_text("x")
        await asyncio.sleep(0.02)
    assert len(looks.all) == 1
    (tmp_path / "a").write_text("a")
    await until(lambda: looks.told() == ["a"], "the file")
    await looks.end()


@pytest.mark.usefixtures("quick")
async def test_where_the_kernel_takes_no_more_watches_folders_are_looked_at_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: Inotify, path: Path, mask: int) -> int:
        raise OSError(28, "No space left on device (raise fs.inotify.max_user_watches)")

    monkeypatch.setattr(Inotify, "watch", refuse)
    monkeypatch.chdir(tmp_path)
    looks = Looks(Folders(["."], (), ()))
    await until(lambda: looks.all, "the first look")
    (tmp_path / "a").write_text("a")
    await until(lambda: looks.told() == ["a"], "the file")
    await looks.end()
    assert capsys.readouterr().err.count("max_user_watches") == 1
