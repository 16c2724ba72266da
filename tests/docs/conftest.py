"""What the tests of guides share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import Documents
from tests.support.cli import Cli
from tests.support.research_config import configure


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A folder as a guide leaves it, with search providers on loopback."""
    cli = Cli(tmp_path)
    cli.environment["PENSTOCK_QUEUE"] = "sqlite:///penstock.db"  # as if nothing were said
    with Documents() as documents:
        configure(cli, documents)
        yield cli
    cli.close()
