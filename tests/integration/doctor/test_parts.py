"""The doctor and files, disks and documents, each broken in turn; and the examination itself."""

import asyncio
import re
import subprocess
import time
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.adapters.sqlite.database import connect
from penstock.config import load
from penstock.doctor import disk, settings
from penstock.doctor.context import Case, Diagnosis, DiskLimits, in_thread, ok
from penstock.doctor.run import Check, run
from tests.support.buckets import GcsBucket
from tests.support.cli import Cli
from tests.support.counting_server import Answer, CountingServer
from tests.support.database_servers import free_port
from tests.support.doctor import Clinic
from tests.support.embedder import EmbedderServer
from tests.support.gcs_server import GcsServer
from tests.support.waiting import PATIENCE

KEY = "sk-do-not-show-this"


# The config file


def test_a_config_that_cannot_be_read_is_broken_and_all_else_skipped(clinic: Clinic) -> None:
    clinic.config("max_workres: 3\n")
    report = clinic.ask()
    report.says("config", "broken", "did you mean max_workers")
    report.says("everything else", "skipped")
    assert report.code == 1


def test_a_password_that_everybody_can_read_is_a_warning(clinic: Clinic) -> None:
    path = clinic.config(f"queue: redis://u:{KEY}@127.0.0.1:{free_port()}/0\n")
    clinic.ask().says("config", "ok")
    path.chmod(0o644)
    report = clinic.ask()
    report.says("config", "warning", "every user", "chmod 640")
    assert KEY not in report.text
    clinic.config("engine: {max_workers: 3}\n").chmod(0o644)
    clinic.ask().says("config", "ok")


def test_settings_that_do_not_go_together_are_warnings(clinic: Clinic) -> None:
    clinic.ask().says("settings", "ok")
    for text in (
        "engine: {lease_seconds: 1}",
        "engine: {lease_seconds: 600}",
        "engine: {upkeep_seconds: 30}",
        "engine: {poll_seconds: 300}",
        "engine: {retry_base_seconds: 400}",
        "answers: {search_loop_seconds: 90}",
        "answers: {answer_seconds: 120}",
        "research: {page_seconds: 4000}",
    ):
        clinic.config(f"{text}\n")
        clinic.ask().says("settings", "warning", re.findall(r"\w+", text)[1])


# Disks and folders


def test_a_full_disk_is_broken(clinic: Clinic, disk: Path) -> None:
    report = clinic.ask(f"sqlite:///{disk}/jobs.db")
    report.says("queue disk", "broken", "2 MB free", "below 200 MB")
    assert report.code == 1


def test_a_disk_with_little_room_is_a_warning(tmp_path: Path) -> None:
    huge = 10**18
    assert disk.judge_space("queue", tmp_path, DiskLimits(huge, huge)).status == "broken"
    assert disk.judge_space("queue", tmp_path, DiskLimits(huge, 1)).status == "warning"
    assert disk.judge_space("queue", tmp_path / "not" / "there", DiskLimits(1, 1)).status == "ok"


def test_a_read_only_folder_is_broken(clinic: Clinic, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    clinic.config(f"blobs: {disk}\n")
    report = clinic.ask(f"sqlite:///{disk}/jobs.db")
    report.says("queue", "broken", "read-only")
    report.says("queue folder", "broken", "cannot be written to")
    report.says("blobs", "broken", "is not writable")


def test_a_folder_that_everybody_can_change_is_a_warning(clinic: Clinic) -> None:
    clinic.folder.chmod(0o777)
    clinic.ask("sqlite:///jobs.db").says("queue folder", "warning", "chmod o-w")


def test_a_queue_that_everybody_can_read_is_a_warning(clinic: Clinic) -> None:
    path, blobs = clinic.folder / "jobs.db", clinic.folder / "jobs.db-blobs"
    connect(path, "FULL").close()
    blobs.mkdir(0o700)
    clinic.folder.chmod(0o755)
    assert "can read" not in clinic.ask("sqlite:///jobs.db").text
    path.chmod(0o644)
    blobs.chmod(0o755)
    report = clinic.ask("sqlite:///jobs.db")
    report.says("queue mode", "warning", "every user", "chmod 600")
    report.says("originals mode", "warning", "every user", "chmod 700")
    clinic.folder.chmod(0o700)
    assert "can read" not in clinic.ask("sqlite:///jobs.db").text


def test_the_file_system_is_that_of_the_deepest_mount(tmp_path: Path) -> None:
    mounts = f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {tmp_path} rw shared:1 - nfs4 host:/ rw"
    assert disk.file_system(tmp_path / "jobs.db", mounts) == "nfs4"
    assert disk.file_system(Path("/jobs.db"), mounts) == "ext4"


# Documents


def test_an_embedder_is_asked_and_its_dimensions_compared(
    clinic: Clinic, embedder: EmbedderServer
) -> None:
    file = embedder.config(clinic.folder)
    clinic.ask(None, "--config", file).says("embedder", "ok", "8 dimensions")
    embedder.dimensions = 4
    report = clinic.ask(None, "--config", file)
    report.says("embedder", "broken", "4 dimensions where 8", "embedder.dimensions")
    assert report.code == 1
    embedder.down()
    clinic.ask(None, "--config", file).says("embedder", "broken", "start http")


def test_documents_of_another_model_are_a_warning(clinic: Clinic, embedder: EmbedderServer) -> None:
    file = embedder.config(clinic.folder)

    async def ingest() -> None:
        app = Penstock("sqlite:///jobs.db", config_file=file)
        documents = app.use("documents").documents
        async with app.running():
            await documents.add(page)
            await app.drain(timeout=PATIENCE)

    page = clinic.folder / "sluice.txt"
    page.write_text("A sluice is a gate.")
    asyncio.run(ingest())
    clinic.ask("sqlite:///jobs.db", "--config", file).says("embedder", "ok")
    other = embedder.config(clinic.folder, "another")
    report = clinic.ask("sqlite:///jobs.db", "--config", other)
    report.says("embedder", "warning", "searched by vectors of toy", "embedded again")


def test_a_key_that_is_missing_or_refused_is_broken(
    clinic: Clinic, server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic.config(
        f"embedder: {{provider: openai, base_url: '{server.url('/v1')}', model: toy,"
        " dimensions: 8, key_variable: TOY_KEY}\n"
    )
    clinic.ask().says("embedder", "broken", "set TOY_KEY")
    monkeypatch.setenv("TOY_KEY", KEY)
    server.answers["/v1"] = Answer(401, body=KEY.encode())
    report = clinic.ask()
    report.says("embedder", "broken", "HTTP 401", "TOY_KEY")
    assert KEY not in report.text


def test_scans_need_what_reads_them(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(clinic.folder))
    clinic.config("documents: {scans: ocr, ocr_languages: eng+xyz}\n")
    clinic.ask().says("scans", "broken", "tesseract on the PATH")
    clinic.config("documents: {scans: model}\n")
    clinic.ask().says("scans", "broken", "llm.models.ingest")


@pytest.mark.usefixtures("tesseract")
def test_tesseract_that_has_the_languages_is_ok(clinic: Clinic) -> None:
    clinic.config("documents: {scans: ocr, ocr_languages: eng}\n")
    clinic.ask().says("scans", "ok", "eng")


def test_a_bucket_is_written_to_and_left_as_it_was(clinic: Clinic) -> None:
    with GcsServer() as server:
        bucket = GcsBucket(server, "originals")
        clinic.config(f"blobs: gs://originals/here?endpoint={server.url}\n")
        clinic.ask().says("blobs", "ok", "takes originals")
        assert bucket.names() == []
        clinic.config(f"blobs: gs://missing/here?endpoint={server.url}\n")
        report = clinic.ask()
        report.says("blobs", "broken", "no bucket 'missing'")
        assert report.code == 1


def test_what_is_configured_and_not_installed_is_broken(
    monkeypatch: pytest.MonkeyPatch, clinic: Clinic
) -> None:
    missing = settings.Extra("scans", ("no_such_library",), "scans", lambda config: True)
    monkeypatch.setattr(settings, "EXTRAS", (missing,))
    clinic.ask().says("extras", "broken", "pip install 'penstock[scans]'")
    clinic.config("names: {models: {en: no_such_model}}\n")
    clinic.ask().says("extras", "broken")


# The examination itself


def case(folder: Path) -> Case:
    return Case(load({}, environment={}), folder / "penstock.yaml")


async def test_a_check_that_hangs_or_fails_hides_no_other(tmp_path: Path) -> None:
    async def hangs(case: Case) -> list[Diagnosis]:
        await in_thread(time.sleep, 60)
        return []

    async def fails(case: Case) -> list[Diagnosis]:
        raise ZeroDivisionError("oh")

    async def is_fine(case: Case) -> list[Diagnosis]:
        return [ok("c", "fine")]

    began = time.monotonic()
    checks = [Check("a", hangs), Check("b", fails), Check("c", is_fine)]
    a, b, c = await run(case(tmp_path), checks, seconds=0.2)
    assert time.monotonic() - began < 30
    assert (a.status, a.found) == ("broken", "no answer within 0.2 s")
    assert (b.status, b.found) == ("broken", "check failed: ZeroDivisionError: oh")
    assert c.status == "ok"


async def test_secrets_are_hidden_whoever_quotes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_KEY", KEY)
    text = "llm: {base_url: 'http://x/v1', key_variable: TOY_KEY, models: {answer: m}}\n"
    (tmp_path / "penstock.yaml").write_text(text)
    queue = {"queue": "postgresql://u:p%40ss-word@h/d"}
    loaded = load(queue, file=tmp_path / "penstock.yaml", environment={})

    async def quotes(case: Case) -> list[Diagnosis]:
        return [ok("x", f"p@ss-word and p%40ss-word and {KEY}")]

    (said,) = await run(Case(loaded, tmp_path), [Check("x", quotes)])
    assert said.found == "*** and *** and ***"


def test_lines_for_programs_and_a_table_for_people(cli: Cli) -> None:
    done = cli("doctor", "--queue", "sqlite:///none/jobs.db", code=1)
    assert "broken   queue " in done.out
    assert "To do: let the user" in done.out
    assert done.out.splitlines()[-1].startswith("1 broken, ")
    shown = cli.on_terminal("doctor", "--queue", "sqlite:///jobs.db")
    assert "what to do" in shown
    assert "\x1b[" in shown
