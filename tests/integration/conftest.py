"""What the tests with real processes share."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from penstock.adapters.postgres import database
from penstock.adapters.postgres import queue as postgres_queue
from penstock.adapters.postgres import wakeups as postgres_wakeups
from penstock.adapters.postgres.documents import search as find
from penstock.adapters.redis import connections
from penstock.adapters.redis import wakeups as redis_wakeups
from tests.support.answers import Study
from tests.support.browser_searches import Visits
from tests.support.cli import Cli
from tests.support.counting_server import Answer, CountingServer
from tests.support.disk import small_disk
from tests.support.doctor import Clinic
from tests.support.document_app import STORES, Shelf, shelf_in
from tests.support.embedder import EmbedderServer
from tests.support.handler_app import HandlerApp
from tests.support.model_server import ModelServer
from tests.support.page_jobs import Reader
from tests.support.research import Bureau, ResearchSite
from tests.support.result_server import CHROMIUM, ResultServer
from tests.support.scans import TESSERACT, VisionServer
from tests.support.serve_process import Host
from tests.support.waiting import PATIENCE
from tests.support.web_documents import SLUICE, Web
from tests.support.worker_processes import Farm


@pytest.fixture(autouse=True)
def _patient_with_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of the machine is no outage, except where a test says so."""
    for module in (connections, redis_wakeups):
        monkeypatch.setattr(module, "ANSWER_SECONDS", PATIENCE)
    monkeypatch.setitem(connections._OPTIONS, "socket_connect_timeout", PATIENCE)


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    """A queue and worker processes, ended with the test."""
    farm = Farm(tmp_path)
    yield farm
    await farm.close()


@pytest.fixture
def server() -> Iterator[CountingServer]:
    """A dependency that counts what is asked of it."""
    with CountingServer() as server:
        yield server


@pytest.fixture
def runner(farm: Farm) -> HandlerApp:
    return HandlerApp(farm)


@pytest.fixture
def embedder() -> Iterator[EmbedderServer]:
    with EmbedderServer() as embedder:
        yield embedder


@pytest.fixture
def shelf(farm: Farm, embedder: EmbedderServer) -> Shelf:
    return Shelf(farm, embedder)


@pytest.fixture
def vision() -> Iterator[VisionServer]:
    with VisionServer() as vision:
        yield vision


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A language model that answers from a script."""
    with ModelServer() as model:
        yield model


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found on the PATH."""
    monkeypatch.setenv("PATH", f"{TESSERACT / 'bin'}:{os.environ['PATH']}")


@pytest.fixture
def patient_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL may take its time here: how soon a statement is given up is not the subject."""
    for module, name in (
        (database, "CONNECT_SECONDS"),
        (database, "COMMAND_SECONDS"),
        (database, "PING_SECONDS"),
        (postgres_queue, "COMMAND_SECONDS"),
        (postgres_wakeups, "PING_TIMEOUT"),
        (find, "STATEMENT_SECONDS"),
    ):
        monkeypatch.setattr(module, name, PATIENCE)
    begin = database._BEGIN.replace("'2s'", "'60s'").replace("'3s'", "'60s'")
    monkeypatch.setattr(database, "_BEGIN", begin)
    defaults = database.Pool.write.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "seconds", PATIENCE)


@pytest.fixture
def chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found on the PATH."""
    monkeypatch.setenv("PATH", f"{CHROMIUM / 'bin'}:{os.environ['PATH']}")


@pytest.fixture
def results() -> Iterator[ResultServer]:
    """A search engine with pages of results."""
    with ResultServer() as results:
        yield results


@pytest.fixture
async def visits(farm: Farm, results: ResultServer, chromium: None) -> AsyncIterator[Visits]:
    """Searches of that engine in a browser, which is closed with the test."""
    visits = Visits(farm, results)
    yield visits
    await visits.close()


@pytest.fixture
async def shelf_of(
    tmp_path: Path, embedder: EmbedderServer
) -> AsyncIterator[Callable[[str], Shelf]]:
    """A shelf in a store of a given name; its processes are ended with the test."""
    made: list[Shelf] = []

    def make(store: str) -> Shelf:
        made.append(shelf_in(store, tmp_path, embedder))
        return made[-1]

    yield make
    for shelf in made:
        await shelf.farm.close()


@pytest.fixture(params=STORES)
def either(request: pytest.FixtureRequest, shelf_of: Callable[[str], Shelf]) -> Shelf:
    """A shelf in each store in turn."""
    return shelf_of(request.param)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """The command line, in a folder with a queue and an app."""
    cli = Cli(tmp_path)
    yield cli
    cli.close()


@pytest.fixture
def host(cli: Cli, embedder: EmbedderServer) -> Host:
    """Where servers are started, ended with the test."""
    return Host(cli, embedder)


@pytest.fixture
def site() -> Iterator[CountingServer]:
    with CountingServer() as site:
        site.answers["/a"] = Answer(headers={"content-type": "text/plain"}, body=SLUICE)
        yield site


@pytest.fixture
def web(shelf: Shelf, site: CountingServer) -> Web:
    return Web(shelf, site)


@pytest.fixture
def library_site() -> Iterator[ResearchSite]:
    """Providers, and the pages they name."""
    with ResearchSite() as site:
        yield site


@pytest.fixture
def bureau(shelf: Shelf, library_site: ResearchSite) -> Bureau:
    """Research tasks, asking providers on loopback."""
    return Bureau(shelf, library_site)


@pytest.fixture
def reader(web: Web) -> Reader:
    """The site has no robots.txt, unless a test gives it one."""
    web.site.answers["/robots.txt"] = Answer(404)
    return Reader(web)


@pytest.fixture
def study(shelf: Shelf, model: ModelServer) -> Study:
    """Questions about mills, answered by a model on loopback."""
    return Study(shelf, model)


@pytest.fixture
def bare_study(shelf: Shelf) -> Study:
    """The same without a model."""
    return Study(shelf)


@pytest.fixture
def clinic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Clinic:
    """Where `penstock doctor` is asked, in this process."""
    return Clinic(tmp_path, capsys, monkeypatch)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    with small_disk(tmp_path / "disk", 2) as mounted:
        if not mounted:
            pytest.skip("mounting a small tmpfs is not permitted here")
        yield tmp_path / "disk"
