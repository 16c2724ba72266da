"""The doctor and everything around the queue: each part broken in turn, and what it says."""

import asyncio
import json
import socket
import subprocess
import time
from pathlib import Path

import pytest

from penstock import JobContext, Penstock, PermanentError
from penstock.cli import main
from penstock.config import load
from penstock.doctor import disk, extras, work
from penstock.doctor.case import Case, DiskLimits, in_thread
from penstock.doctor.checks import Check
from penstock.doctor.examine import run
from penstock.doctor.finding import Finding, ok
from penstock.ports.lanes import LaneInfo
from penstock.ports.queue import ProcessInfo
from tests.support.buckets import GcsBucket
from tests.support.cli import Cli
from tests.support.clinic import Clinic
from tests.support.counter import counter_at
from tests.support.embedder import EmbedderServer
from tests.support.gcs_server import GcsServer
from tests.support.processes import Farm
from tests.support.server import Answer, CountingServer, as_json
from tests.support.servers import free_port
from tests.support.serving import Host

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
    clinic.config("max_workers: 3\n").chmod(0o644)
    clinic.ask().says("config", "ok")


def test_settings_that_do_not_go_together_are_warnings(clinic: Clinic) -> None:
    clinic.ask().says("settings", "ok")
    for text in (
        "lease_seconds: 1",
        "lease_seconds: 600",
        "upkeep_seconds: 30",
        "poll_seconds: 300",
        "retry_base_seconds: 400",
        "search_loop_seconds: 90",
        "answer_seconds: 120",
        "page_seconds: 4000",
    ):
        clinic.config(f"{text}\n")
        clinic.ask().says("settings", "warning", text.partition(":")[0])


# Disks and folders


def test_a_full_disk_is_broken(clinic: Clinic, small_disk: Path) -> None:
    report = clinic.ask(f"sqlite:///{small_disk}/jobs.db")
    report.says("queue disk", "broken", "2 MB free", "under 200 MB")
    assert report.code == 1


def test_a_disk_with_little_room_is_a_warning(tmp_path: Path) -> None:
    huge = 10**18
    assert disk.judge_space("queue", tmp_path, DiskLimits(huge, huge)).status == "broken"
    assert disk.judge_space("queue", tmp_path, DiskLimits(huge, 1)).status == "warning"
    assert disk.judge_space("queue", tmp_path / "not" / "there", DiskLimits(1, 1)).status == "ok"


def test_a_read_only_folder_is_broken(clinic: Clinic, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    clinic.config(f"blobs: {small_disk}\n")
    report = clinic.ask(f"sqlite:///{small_disk}/jobs.db")
    report.says("queue", "broken", "read-only")
    report.says("queue folder", "broken", "cannot be written to")
    report.says("blobs", "broken", "does not take files")


def test_a_folder_that_everybody_can_change_is_a_warning(clinic: Clinic) -> None:
    clinic.folder.chmod(0o777)
    clinic.ask("sqlite:///jobs.db").says("queue folder", "warning", "chmod o-w")


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
    clinic.ask(None, "--config", file).says("embedder", "broken", "bring", "up")


def test_documents_of_another_model_are_a_warning(clinic: Clinic, embedder: EmbedderServer) -> None:
    file = embedder.config(clinic.folder)

    async def ingest() -> None:
        app = Penstock("sqlite:///jobs.db", config_file=file)
        corpus = app.corpus
        async with app.running():
            await corpus.add(page)
            await app.drain(timeout=30)

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
    clinic.config("scans: ocr\nocr_languages: eng+xyz\n")
    clinic.ask().says("scans", "broken", "tesseract on the PATH")
    clinic.config("scans: model\n")
    clinic.ask().says("scans", "broken", "llm.models.ingest")


@pytest.mark.usefixtures("tesseract")
def test_tesseract_that_has_the_languages_is_ok(clinic: Clinic) -> None:
    clinic.config("scans: ocr\nocr_languages: eng\n")
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
    missing = extras.Extra("scans", ("no_such_library",), "scans", lambda config: True)
    monkeypatch.setattr(extras, "EXTRAS", (missing,))
    clinic.ask().says("extras", "broken", "pip install 'penstock[scans]'")
    clinic.config("names: {models: {en: no_such_model}}\n")
    clinic.ask().says("extras", "broken")


# Models, librarian, browser, providers


@pytest.fixture
def with_model(
    clinic: Clinic, server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> CountingServer:
    """A server of one model, `wise`, for which a key is set."""
    monkeypatch.setenv("TOY_KEY", KEY)
    clinic.config(
        f"llm: {{base_url: '{server.url('/v1')}', key_variable: TOY_KEY, models: {{answer: wise}}}}"
    )
    server.answers["/v1/models"] = as_json({"data": [{"id": "wise"}, {"id": "other"}]})
    return server


PART = "model plan, search, answer"


def test_a_model_is_looked_for_with_its_key(clinic: Clinic, with_model: CountingServer) -> None:
    clinic.ask().says(PART, "ok", "wise")
    (hit,) = with_model.hits
    assert hit.headers["authorization"] == f"Bearer {KEY}"
    with_model.answers["/v1/models"] = as_json({"data": [{"id": "other"}]})
    clinic.ask().says(PART, "broken", "does not know wise; it has other")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (Answer(401), "broken", "refuses the key (HTTP 401) | put a valid key into TOY_KEY"),
        (Answer(500), "broken", "answers 500"),
        (Answer(429), "warning", "answers 429"),
        (Answer(body=b"[]"), "warning", "not with a list"),
        (Answer(reset=True), "broken", "cannot be reached"),
    ],
    ids=["401", "500", "429", "nonsense", "reset"],
)
def test_a_model_server_in_trouble_is_told(
    answer: Answer, status: str, words: str, clinic: Clinic, with_model: CountingServer
) -> None:
    with_model.answers["/v1/models"] = answer
    report = clinic.ask()
    report.says(PART, status, words)
    assert KEY not in report.text


def test_a_model_server_without_a_list_is_asked_for_one_word(
    clinic: Clinic, with_model: CountingServer
) -> None:
    with_model.answers["/v1/models"] = Answer(404)
    clinic.ask().says(PART, "ok", "wise")
    assert json.loads(with_model.hits[-1].body)["max_tokens"] == 1
    with_model.answers["/v1"] = Answer(404)
    clinic.ask().says(PART, "broken", "answers 404", "llm.base_url")


async def test_a_librarian_is_asked_whether_it_is_ready_and_takes_the_token(
    clinic: Clinic, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_TOKEN", "right")
    async with counter_at(farm, remote=True, token_variable="TOY_TOKEN") as counter:
        clinic.config(
            f"librarian: {{address: '127.0.0.1:{counter.port}', token_variable: TOY_TOKEN}}"
        )
        (await asyncio.to_thread(clinic.ask)).says("librarian", "ok")
        monkeypatch.setenv("TOY_TOKEN", "wrong-one")
        report = await asyncio.to_thread(clinic.ask)
        report.says("librarian", "broken", "token", "on both sides")
        assert "wrong-one" not in report.text
        assert counter.diary.notes("began") == [], "no search was made"
    clinic.config(f"librarian: {{address: '127.0.0.1:{free_port()}'}}")
    report = await asyncio.to_thread(clinic.ask)
    report.says("librarian", "broken", "penstock librarian")


ENGINE = "engines: {x: {url: 'https://x.example/?q={query}', result: li, title: a, link: a}}"


def test_a_browser_that_does_not_run_is_broken(clinic: Clinic) -> None:
    program = clinic.folder / "chromium"
    clinic.config(f"browser: {{executable: {program}, {ENGINE}}}")
    clinic.ask().says("browser", "broken", "is not a program")
    program.write_text("#!/bin/sh\nexit 127\n")
    program.chmod(0o755)
    clinic.ask().says("browser", "broken", "exit code 127", "--version")


@pytest.mark.usefixtures("chromium")
def test_chromium_that_runs_tells_its_version(clinic: Clinic) -> None:
    clinic.config(f"browser: {{{ENGINE}}}")
    clinic.ask().says("browser", "ok", "Chromium")


def test_providers_are_asked_only_with_network(clinic: Clinic, server: CountingServer) -> None:
    clinic.config(
        f"search_providers: searxng\nproviders: {{searxng: {{base_url: '{server.url('/')}'}}}}\n"
        "contact: mail@example.org\n"
    )
    clinic.ask().says("search providers", "ok", "not asked")
    assert server.hits == []
    clinic.ask(None, "--network").says("provider searxng", "ok", "can be reached")
    server.down()
    clinic.ask(None, "--network").says("provider searxng", "broken", "cannot be reached")


def test_providers_without_key_or_contact_are_told(clinic: Clinic) -> None:
    clinic.ask().says("search providers", "skipped")
    clinic.config("search_providers: openalex, crossref\n")
    report = clinic.ask()
    report.says("provider openalex", "warning", "no key")
    report.says("search providers", "warning", "contact")
    clinic.config("providers: {openalex: {api_key: NO_SUCH_VARIABLE}}\ncontact: a@example.org\n")
    clinic.ask().says("provider openalex", "broken", "NO_SUCH_VARIABLE")


# The server, and what goes on


def test_a_port_of_another_program_is_broken(clinic: Clinic) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        clinic.config(f"server: {{port: {port}}}\n")
        report = clinic.ask()
        report.says("server", "broken", f"127.0.0.1:{port}", "server.port")
        assert report.code == 1
    clinic.config("server: {host: 192.0.2.1}\n")
    clinic.ask().says("server", "broken", "cannot listen")


def test_a_port_where_penstock_serves_is_fine(clinic: Clinic, host: Host) -> None:
    port = host.serve().url.rpartition(":")[2]
    clinic.config(f"server: {{port: {port}}}\n")
    clinic.ask(host.cli.url).says("server", "ok", "a Penstock serves")


def test_listening_for_others_without_a_key_is_broken(clinic: Clinic) -> None:
    clinic.config("server: {host: 0.0.0.0, port: 0}\nqueue: sqlite:///jobs.db\n")

    async def enqueue() -> None:
        async with Penstock("sqlite:///jobs.db") as app:
            await app.enqueue("mail")

    asyncio.run(enqueue())
    clinic.ask().says("keys", "broken", "penstock keys create")
    assert main(["keys", "create", "laptop"]) == 0
    clinic.ask().says("keys", "ok", "1 valid")


def test_new_dead_letters_and_lonely_kinds_are_warnings(clinic: Clinic) -> None:
    async def work_on() -> None:
        app = Penstock("sqlite:///jobs.db")

        @app.job("doomed")
        async def doomed(ctx: JobContext) -> None:
            raise PermanentError("no")

        async with app.running():
            job = await app.enqueue("doomed")
            await app.wait(job.id, timeout=30)
            await app.enqueue("nobody")
            report = await asyncio.to_thread(clinic.ask, "sqlite:///jobs.db")
        report.says("dead letters", "warning", "1 came in the last hour", "dead-letters list")
        report.says("workers", "warning", "no worker process handles nobody (1 queued)")
        assert report.code == 0

    asyncio.run(work_on())


def lane(**given: object) -> LaneInfo:
    values: dict[str, object] = {
        **dict.fromkeys(("parent", "retry_at", "blocked_until", "blocked_why", "per_day")),
        "name": "api",
        "spacing": 0.1,
        "max_parallel": 1,
        "in_flight": 0,
        "waiting": 7,
        "breaker": "closed",
        "used_today": 0,
    }
    return LaneInfo(**{**values, **given})  # type: ignore[arg-type]


def test_lanes_in_trouble_are_told_apart() -> None:
    (refused,) = work.judge_lanes([lane(blocked_why="credentials")])
    assert (refused.status, "lanes resume api" in refused.advice) == ("broken", True)
    (paused,) = work.judge_lanes([lane(blocked_why="paused")])
    (away,) = work.judge_lanes([lane(breaker="open")])
    assert (paused.status, away.status) == ("warning", "warning")
    assert "7 jobs wait" in away.found


def test_processes_that_are_degraded_or_stuck_are_warnings() -> None:
    now = time.time()
    process = ProcessInfo("1", "mill", 7, ["mail"], 10, now, now, now + 9, {"degraded": "gone"})
    (degraded,) = work.judge_workers([process], [], now)
    assert (degraded.status, degraded.found) == ("warning", "process 7 on mill is degraded: gone")
    assert work.judge_workers([process], [], now + 60)[0].found == "no worker process is alive"


# The examination itself


def case(folder: Path) -> Case:
    return Case(load({}, environment={}), folder / "penstock.yaml")


async def test_a_check_that_hangs_or_fails_hides_no_other(tmp_path: Path) -> None:
    async def hangs(case: Case) -> list[Finding]:
        await in_thread(time.sleep, 30)
        return []

    async def fails(case: Case) -> list[Finding]:
        raise ZeroDivisionError("oh")

    async def is_fine(case: Case) -> list[Finding]:
        return [ok("c", "fine")]

    began = time.monotonic()
    checks = [Check("a", hangs), Check("b", fails), Check("c", is_fine)]
    a, b, c = await run(case(tmp_path), checks, seconds=0.2)
    assert time.monotonic() - began < 5
    assert (a.status, a.found) == ("broken", "no answer within 0.2 s")
    assert (b.status, b.found) == ("broken", "could not be looked at: ZeroDivisionError: oh")
    assert c.status == "ok"


async def test_secrets_are_hidden_whoever_quotes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_KEY", KEY)
    text = "llm: {base_url: 'http://x/v1', key_variable: TOY_KEY, models: {answer: m}}\n"
    (tmp_path / "penstock.yaml").write_text(text)
    queue = {"queue": "postgresql://u:p%40ss-word@h/d"}
    loaded = load(queue, file=tmp_path / "penstock.yaml", environment={})

    async def quotes(case: Case) -> list[Finding]:
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
