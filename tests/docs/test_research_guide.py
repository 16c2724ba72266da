"""The guide to research is true: it is followed from top to bottom, with providers on loopback."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import run, run_console
from tests.docs.run_blocks import blocks
from tests.support.cli import Cli, wait_until
from tests.support.research import ResearchSite
from tests.support.researching import configure
from tests.support.server import Answer
from tests.support.serving import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide-research.md").read_text()
RUN_BLOCKS = Path(__file__).parent / "run_blocks.py"
SERVER = "localhost:8321"
TITLES = {b"Work 0": b"The ageing of water wheels", b"Work 1": b"Decay of oak in mill wheels"}


class Library(ResearchSite):
    """Works with titles that a guide can show."""

    def answer(self, path: str) -> Answer:
        answer = super().answer(path)
        body = answer.body
        for plain, title in TITLES.items():
            body = body.replace(plain, title)
        return Answer(answer.status, answer.delay, answer.headers, body, answer.hang)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    cli.environment["PENSTOCK_QUEUE"] = "sqlite:///penstock.db"  # as if nothing were said
    with Library() as library:
        configure(cli, library)
        yield cli
    cli.close()


def serve(cli: Cli) -> str:
    """The address of a server, started where the guide says that one is running."""
    running = cli.start("serve", "--port", "0")
    wait_until(lambda: "http://" in running.err, "the server", PATIENCE)
    return str(re.findall(r"http://(\S+)", running.err)[0])


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_guide_to_research_runs_as_written(cli: Cli) -> None:
    address = ""
    for language, text, _ in blocks(PAGE):
        if SERVER in text:
            address = address or serve(cli)
        here = text.replace(SERVER, address)
        if language == "console":
            run_console(here, cli.folder)
        elif language == "python":
            (cli.folder / "page.md").write_text(f"```python\n{here}```\n")
            run([sys.executable, str(RUN_BLOCKS), "page.md"], cli.folder)
    assert address
