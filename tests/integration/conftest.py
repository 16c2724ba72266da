"""What the tests with real processes share."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.embedder import EmbedderServer
from tests.support.processes import Farm
from tests.support.scans import TESSERACT, VisionServer
from tests.support.shelf import Shelf


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
def vision() -> Iterator[VisionServer]:
    with VisionServer() as vision:
        yield vision


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found on the PATH."""
    monkeypatch.setenv("PATH", f"{TESSERACT / 'bin'}:{os.environ['PATH']}")


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """The command line, in a folder with a queue and an app."""
    cli = Cli(tmp_path)
    yield cli
    cli.close()
