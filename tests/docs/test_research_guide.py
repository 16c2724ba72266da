"""The guide to research is true: it is followed from top to bottom, with providers on loopback."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.commands import run, run_console
from tests.docs.documents import SERVER, serve
from tests.docs.run_blocks import blocks
from tests.support.cli import Cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide-research.md").read_text()
RUN_BLOCKS = Path(__file__).parent / "run_blocks.py"


@pytest.mark.timeout(900)
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
