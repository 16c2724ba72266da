"""The doctor and services, the server and what goes on, each broken in turn."""

import asyncio
import json
import socket
import time
from collections.abc import Sequence

import pytest

from penstock import JobContext, Penstock, PermanentError
from penstock.api.attention import QueueOutlook, needs_attention
from penstock.cli import main
from penstock.doctor import queue as work
from penstock.doctor import services
from penstock.doctor.context import Diagnosis
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import ProcessInfo
from tests.support.counting_server import Answer, CountingServer, as_json
from tests.support.database_servers import free_port
from tests.support.doctor import Clinic
from tests.support.librarian_callers import counter_at
from tests.support.serve_process import Host
from tests.support.waiting import PATIENCE
from tests.support.worker_processes import Farm

KEY = "sk-do-not-show-this"


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
        f"providers: {{searxng: {{base_url: '{server.url('/')}'}}}}\n"
        "research: {search_providers: [searxng]}\noutbound: {contact: mail@example.org}\n"
    )
    clinic.ask().says("search providers", "ok", "not asked")
    assert server.hits == []
    clinic.ask(None, "--network").says("provider searxng", "ok", "can be reached")
    server.down()
    clinic.ask(None, "--network").says("provider searxng", "broken", "cannot be reached")


def test_providers_without_key_or_contact_are_told(clinic: Clinic) -> None:
    clinic.ask().says("search providers", "skipped")
    clinic.config("research: {search_providers: [openalex, crossref]}\n")
    report = clinic.ask()
    report.says("provider openalex", "warning", "no key")
    report.says("search providers", "warning", "contact")
    clinic.config(
        "providers: {openalex: {api_key: NO_SUCH_VARIABLE}}\noutbound: {contact: a@example.org}\n"
    )
    clinic.ask().says("provider openalex", "broken", "NO_SUCH_VARIABLE")


# The server, and what goes on


def test_a_port_of_another_program_is_broken(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "ANSWER_SECONDS", 0.5)  # it never answers
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
            await app.wait(job.id, timeout=PATIENCE)
            await app.enqueue("nobody")
            report = await asyncio.to_thread(clinic.ask, "sqlite:///jobs.db")
        report.says("dead letters", "warning", "doomed: PermanentError", "dead-letters groups")
        report.says("workers", "warning", "kind without a worker: nobody", "1 job waiting")
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


def judged(
    lanes: Sequence[LaneInfo] = (), processes: Sequence[ProcessInfo] = (), now: float = 0.0
) -> dict[str, Diagnosis]:
    """By part."""
    found = needs_attention(now, [], processes, lanes, [])
    outlook = QueueOutlook([], list(processes), list(lanes), [], found)
    return {finding.part: finding for finding in work.judge(outlook, now)}


def test_lanes_in_trouble_are_told_apart() -> None:
    refused = judged([lane(blocked_why="credentials")])["lanes"]
    assert (refused.status, "lanes resume api" in refused.advice) == ("broken", True)
    paused = judged([lane(blocked_why="paused")])["lanes"]
    away = judged([lane(breaker="open")])["lanes"]
    assert (paused.status, away.status) == ("warning", "warning")
    assert (away.found, "7 jobs waiting" in away.advice) == ("breaker open: api", True)
    assert judged([lane()])["lanes"].status == "ok"


def test_processes_that_are_degraded_or_gone_are_warnings() -> None:
    now = time.time()
    process = ProcessInfo("1", "mill", 7, ["mail"], 10, now, now, now + 9, {"degraded": "gone"})
    degraded = judged(processes=[process], now=now)["workers"]
    assert (degraded.status, degraded.found) == ("warning", "queue unreachable: mill 7")
    gone = judged(processes=[process], now=now + 60)["workers"]
    assert (gone.status, gone.found) == ("warning", "worker gone: mill 7")
