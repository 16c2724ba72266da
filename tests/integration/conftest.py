"""What the tests with real processes share."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.embedder import EmbedderServer
from tests.support.processes import Farm
from tests.support.shelf import STORES, Shelf, shelf_in


@pytest.fixture
async def farm(tmp_path: Path) -> AsyncIterator[Farm]:
    """A queue and worker processes, ended with the test."""
    farm = Farm(tmp_path)
    yield farm
    await farm.close()


@pytest.fixture
def embedder() -> Iterator[EmbedderServer]:
    with EmbedderServer() as embedder:
        yield embedder


@pytest.fixture
def shelf(farm: Farm, embedder: EmbedderServer) -> Shelf:
    return Shelf(farm, embedder)


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
