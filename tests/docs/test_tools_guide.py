"""The guide to tools is true: it is followed from top to bottom."""

import shutil

import pytest

from tests.docs.commands import follow
from tests.docs.documents import SERVER, serve
from tests.docs.test_mcp_guide import ROOT
from tests.support.cli import Cli

PAGE = (ROOT / "docs" / "guide-tools.md").read_text()


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_guide_to_tools_runs_as_written(cli: Cli) -> None:
    alone, served = PAGE.split("## From other programs")
    follow(alone, cli.folder)
    follow(served.replace(SERVER, serve(cli, "shop:app")), cli.folder)
