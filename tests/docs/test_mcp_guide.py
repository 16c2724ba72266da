"""The guide to MCP is true: it is followed from top to bottom, with providers on loopback."""

import ast
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from penstock import errors
from penstock.errors import services
from penstock.mcp.resources import MAX_CHARACTERS as MAX_READ
from penstock.mcp.results import MAX_CHARACTERS
from penstock.mcp.stdio import MAX_BYTES
from penstock.mcp.tools import all_tools
from penstock.mcp.tools.ingest import TEXT_LIMIT
from penstock.mcp.waiting import MAX_WAIT
from penstock.research.service import MAX_QUERIES, MAX_RESULTS, MAX_SEARCHES
from tests.docs.commands import run_console
from tests.docs.documents import SERVER, serve
from tests.docs.run_blocks import blocks
from tests.support.cli import Cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide-mcp.md").read_text()
SOURCE = ROOT / "src" / "penstock" / "mcp"


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_guide_to_mcp_runs_as_written(cli: Cli) -> None:
    for language, text, line in blocks(PAGE):
        if language == "python":
            file = re.match(r"# (\S+\.py)\n", text)
            assert file, f"line {line}: the first line names the file to save it as"
            (cli.folder / file[1]).write_text(text)
        elif language == "console":
            run_console(text.replace(SERVER, serve(cli)) if SERVER in text else text, cli.folder)


async def test_configuration_to_paste_starts_it(cli: Cli) -> None:
    local, remote = (
        json.loads(text)["mcpServers"]["penstock"]
        for language, text, _ in blocks(PAGE)
        if language == "json"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**cli.environment, "PATH": path}
    parameters = StdioServerParameters(**local, cwd=cli.folder, env=environment)
    async with Client(parameters) as client:
        assert len((await client.list_tools()).tools) == len(all_tools())
    assert remote["url"] == f"http://{SERVER}/mcp"
    assert remote["headers"]["Authorization"].startswith("Bearer pk_")


def test_guide_to_mcp_names_every_tool_and_code() -> None:
    told = PAGE.split("## Tools\n")[1]
    for tool in all_tools():
        assert f"`{tool.name}`" in told, tool.name
    codes = set(re.findall(r"`([a-z-]+)`", _cells(PAGE.split("## Errors")[1].split("## ")[0])))
    unraised = {
        *("job-ended", "log-stopped", "original-gone", "too-many-signals"),
        "tool-not-found",  # over MCP it is `not-found`
        *("schedule-not-found", "schedule-in-code", "schedule-changed"),
    }
    assert codes == _codes() - unraised, "no tool can raise these"


def _cells(section: str) -> str:
    """The first column of a table."""
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return " ".join(row for row in rows if row != "`code`")


def _codes() -> set[str]:
    """All that the source names, and that of a full queue, which the server brings."""
    found = {"queue-full"} | {
        value.code
        for value in {**vars(errors), **vars(services)}.values()
        if isinstance(value, type) and issubclass(value, errors.PenstockError)
    }
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="ToolFailure" | "CallRefused"),
                    args=[ast.Constant(value=str() as code), *_],
                ):
                    found.add(code)
    return found


def test_guide_to_mcp_tells_the_limits_there_are() -> None:
    limits = PAGE.split("## Limits")[1]
    for limit in (
        f"about {MAX_CHARACTERS:,} characters",
        f"{MAX_WAIT:g} s",
        f"{MAX_QUERIES}, {MAX_SEARCHES:,}",
        f"| {MAX_RESULTS} |",
        f"{TEXT_LIMIT:,} characters",
        f"{MAX_BYTES / 1e6:g} MB",
        f"{MAX_READ:,} characters; a longer one",
    ):
        assert limit in limits, limit
