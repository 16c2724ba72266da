"""The guide to the server is true: it is followed from top to bottom, against one server."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from penstock import errors
from penstock.errors import services
from penstock.model.server import TOOL_FAMILIES, ServerConfig
from tests.docs.blocks import Block, all_blocks
from tests.docs.commands import run, run_console, without_pauses
from tests.docs.run_blocks import blocks
from tests.support.cli import Cli, Running, wait_until
from tests.support.serve_process import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide-server.md").read_text()
SERVER = ROOT / "src" / "penstock" / "server"
RUN_BLOCKS = Path(__file__).parent / "run_blocks.py"
NODE = ["node", "--no-warnings", "--experimental-eventsource"]
ADDRESS = "http://127.0.0.1:8321"

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


class Started(NamedTuple):
    folder: Path
    running: Running
    address: str

    def here(self, text: str) -> str:
        """A block of the page, for this server."""
        return text.replace("localhost:8321", self.address.removeprefix("http://"))


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """A server, started as the guide says."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    cli = Cli(tmp_path)
    cli.environment["PENSTOCK_QUEUE"] = "sqlite:///penstock.db"  # as if nothing were said
    shown = re.search(r"^\$ penstock (serve .*)\n(.*)$", PAGE, re.MULTILINE)
    assert shown
    running = cli.start(*shown[1].split(), "--port", "0")
    wait_until(lambda: "\n" in running.err, "the server", PATIENCE)
    [address] = re.findall(r"http://\S+", running.err)
    assert running.err.strip() == shown[2].replace(ADDRESS, address)
    yield Started(tmp_path, running, address)
    cli.close()


@pytest.mark.timeout(900)
@needs_curl
def test_guide_to_the_server_runs_as_written(started: Started) -> None:
    for language, text, _ in blocks(PAGE):
        if language == "console":
            run_console(started.here(text), started.folder)
        elif language == "python":
            (started.folder / "page.md").write_text(f"```python\n{started.here(text)}```\n")
            run([sys.executable, str(RUN_BLOCKS), "page.md"], started.folder)
    said = without_pauses(started.running.err)
    assert said.count("\n") == 1, "it says nothing more on a good day"


WITH_REQUESTS = [
    block
    for block in all_blocks()
    if block.language == "sh" and re.search(r"^curl ", block.text, re.MULTILINE)
]


@needs_curl
@pytest.mark.parametrize("block", WITH_REQUESTS, ids=lambda block: block.where)
def test_requests_of_a_page_run_against_a_server(block: Block, started: Started) -> None:
    for line in block.text.splitlines():
        assert line.startswith("curl "), "requests have a block of their own"
        command = started.here(line).replace("curl ", "curl --fail ", 1)
        run(["bash", "-c", command], started.folder)


def _has_event_source() -> bool:
    """Whether there is something here that runs what a browser would."""
    if shutil.which("node") is None:
        return False
    asked = [*NODE, "-e", "process.exit(typeof EventSource === 'function' ? 0 : 1)"]
    return subprocess.run(asked, check=False, capture_output=True, timeout=300).returncode == 0


@needs_curl
@pytest.mark.skipif(not _has_event_source(), reason="no node with an EventSource")
def test_script_of_the_guide_to_the_server_follows_a_document(started: Started) -> None:
    [script] = [text for language, text, _ in blocks(PAGE) if language == "javascript"]
    upload = next(text for language, text, _ in blocks(PAGE) if language == "console")
    run_console(started.here(upload), started.folder)
    (started.folder / "page.js").write_text(script.replace('("/', f'("{started.address}/'))
    told = run([*NODE, "page.js"], started.folder).splitlines()
    assert told[0].strip() == "queued ingest.parse"
    assert told[-1] == "completed"


def test_guide_to_the_server_says_what_to_do_about_every_code() -> None:
    told = re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert {code for _, code in told} == {code for _, code in _codes()}
    for status, code in _codes():
        assert status is None or (str(status), code) in told


def _codes() -> set[tuple[int | None, str]]:
    """(status, code) of every problem there is in the source; no status where it is computed."""
    found: set[tuple[int | None, str]] = {
        (value.http_status, value.code)
        for value in {**vars(errors), **vars(services)}.values()
        if isinstance(value, type) and issubclass(value, errors.PenstockError)
    }
    for file in SERVER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="Problem"),
                    args=[
                        ast.Constant(value=int() as status),
                        ast.Constant(value=str() as code),
                        *_,
                    ],
                ):
                    found.add((status, code))
                case ast.Call(
                    func=ast.Name(id="Problem"), args=[_, ast.Constant(value=str() as code), *_]
                ):
                    found.add((None, code))
                case ast.Call(
                    func=ast.Name(id="busy"), args=[ast.Constant(value=str() as code), *_]
                ):
                    found.add((503, code))
    return found


def test_guide_to_the_server_shows_every_limit_with_its_default() -> None:
    shown: dict[str, object] = {}
    for language, text, _ in blocks(PAGE):
        if language == "yaml" and "port:" in text:
            shown = yaml.safe_load(text)["server"]
    defaults = {field.name: field.default for field in fields(ServerConfig)}
    assert shown == {**defaults, "hosts": [], "origins": [], "mcp_tools": list(TOOL_FAMILIES)}
