"""The guide to answers is true: it is followed from top to bottom, with a server where it says."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import run, run_console
from tests.docs.run_blocks import blocks
from tests.support.cli import Cli, wait_until
from tests.support.serve_process import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide-answers.md").read_text()
RUN_BLOCKS = Path(__file__).parent / "run_blocks.py"
SERVER = "localhost:8321"


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    cli.environment["PENSTOCK_QUEUE"] = "sqlite:///penstock.db"  # as if nothing were said
    shutil.copytree(ROOT / "examples" / "documents", tmp_path / "examples" / "documents")
    yield cli
    cli.close()


def serve(cli: Cli) -> str:
    """The address of a server, started where the guide says that one is running."""
    running = cli.start("serve", "--port", "0")
    wait_until(lambda: "http://" in running.err, "the server", PATIENCE)
    return str(re.findall(r"http://(\S+)", running.err)[0])


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_guide_to_answers_runs_as_written(cli: Cli) -> None:
    page = "".join(
        f"```python\n{text}```\n" for language, text, _ in blocks(PAGE) if language == "python"
    )
    (cli.folder / "page.md").write_text(page)
    run([sys.executable, str(RUN_BLOCKS), "page.md"], cli.folder)
    address = ""
    for language, text, _ in blocks(PAGE):
        if language == "console":
            if SERVER in text:
                address = address or serve(cli)
            run_console(text.replace(SERVER, address), cli.folder)
    assert address
