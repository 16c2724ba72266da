"""Commands that tell how things go tell it at once, also into a pipe: `penstock ... | tee log`."""

import os
import select
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.support.answers import DOCUMENTS, QUESTION, content
from tests.support.answers_config import MANY_WORDS, NAMES, settings
from tests.support.cli import MODULE, Cli
from tests.support.config_file import config_text
from tests.support.counting_server import Answer
from tests.support.embedder import EmbedderServer
from tests.support.forks import Started, start
from tests.support.model_server import ANSWER, ModelServer, Reply
from tests.support.research import ResearchSite
from tests.support.research_config import configure
from tests.support.waiting import PATIENCE

UNBUFFERED = "PYTHONUNBUFFERED"
TALKING = """\
import asyncio
from penstock import JobContext, Penstock

app = Penstock(durable=False)

@app.job("talk")
async def talk(ctx: JobContext) -> None:
    print("a word from the handler")
    await asyncio.Event().wait()
"""


class Piped:
    """A command whose standard output is a pipe."""

    def __init__(self, process: Started, pipe: int) -> None:
        self.process = process
        self._pipe = pipe

    def says(self, text: str) -> None:
        """Wait until it has written that. What is started here does not end by itself, so that it
        cannot be the end that makes it write."""
        seen = b""
        while text.encode() not in seen:
            assert select.select([self._pipe], [], [], PATIENCE)[0], f"{text!r} not in {seen!r}"
            part = os.read(self._pipe, 65536)
            assert part, f"it ended with {seen!r}"
            seen += part


Pipe = Callable[..., Piped]


@pytest.fixture
def piped(cli: Cli) -> Iterator[Pipe]:
    """Start a command as a shell does in front of `|`; it is ended with the test."""
    running: list[Piped] = []

    def start_piped(*arguments: str) -> Piped:
        ours, theirs = os.pipe()
        with (cli.folder / "piped.err").open("wb") as stderr:
            process = start(
                MODULE,
                arguments,
                folder=cli.folder,
                environment={k: v for k, v in cli.environment.items() if k != UNBUFFERED},
                stdout=theirs,
                stderr=stderr.fileno(),
            )
        os.close(theirs)
        running.append(Piped(process, ours))
        return running[-1]

    yield start_piped
    for one in running:
        with suppress(ProcessLookupError):
            one.process.kill()
        one.process.wait(PATIENCE)
        os.close(one._pipe)


def test_jobs_are_watched(cli: Cli, piped: Pipe) -> None:
    job_id = cli.enqueue("add")
    piped("jobs", "watch", job_id).says(f"{job_id}  add  queued")
    piped("jobs", "watch", "--until-idle").says("queued 1  running 0")
    piped("jobs", "watch", job_id, "--json").says('"state": "queued"')


def test_the_id_of_a_job_comes_before_its_result(cli: Cli, piped: Pipe) -> None:
    waiting = piped("enqueue", "hold", "--wait")
    waiting.says("\n")
    assert cli("jobs", "list", "--json").json[0]["state"] == "queued"


def test_what_a_handler_prints_comes_while_it_runs(cli: Cli, piped: Pipe) -> None:
    (cli.folder / "talking.py").write_text(TALKING)
    cli.enqueue("talk")
    piped("worker", "talking:app").says("a word from the handler\n")


@pytest.mark.parametrize(
    "command",
    [("worker", "shop:app"), ("serve", "shop:app", "--port", "0"), ("librarian", "--port", "0")],
    ids=lambda command: command[0],
)
def test_services_say_that_they_run(piped: Pipe, command: tuple[str, ...]) -> None:
    piped(*command, "--json").says('"event": "started"')


def test_each_document_is_told_when_it_is_done(
    cli: Cli, piped: Pipe, embedder: EmbedderServer
) -> None:
    configure_embedder(cli, embedder)
    (cli.folder / "papers").mkdir()
    (cli.folder / "papers" / "sluice.txt").write_text("The sluice opens at dawn.")
    piped("ingest", "papers", "--watch").says("completed  papers/sluice.txt")


def test_research_is_told_as_it_goes(cli: Cli, piped: Pipe, library_site: ResearchSite) -> None:
    configure(cli, library_site)
    library_site.faults = dict.fromkeys(("openalex", "searxng"), Answer(hang=True))
    piped("research", "water wheels", "--watch").says("search 1: water wheels")


def test_an_answer_comes_as_it_is_written(
    cli: Cli, piped: Pipe, embedder: EmbedderServer, model: ModelServer
) -> None:
    content(model)
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05, stall_after=40)
    configure_embedder(cli, embedder, model)
    for name in NAMES:
        (cli.folder / f"{name}.txt").write_text(DOCUMENTS[name])
    cli("ingest", *(f"{name}.txt" for name in NAMES))
    piped("ask", QUESTION).says("Word 1 is")


def configure_embedder(
    cli: Cli, embedder: EmbedderServer, model: ModelServer | None = None
) -> None:
    toy = {"provider": "openai", "base_url": embedder.url("/v1"), "model": "toy", "dimensions": 8}
    known = {"embedder": toy, **settings(model)}
    (cli.folder / "penstock.yaml").write_text(config_text(known))
