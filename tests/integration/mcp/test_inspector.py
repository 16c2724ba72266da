"""The MCP Inspector, a client that is not of the SDK we serve with: it finds the tools portable and
gets answers from them, and resources, over each transport and in each era."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.support.mcp_clients import WAYS, Agents
from tests.support.sampling import some_of
from tests.support.serve_process import Host
from tools import get_inspector

pytestmark = [
    pytest.mark.timeout(1800),  # the first time it is downloaded
    pytest.mark.skipif(shutil.which("npm") is None, reason="the Inspector needs npm"),
]
INSPECTOR_ERAS = {"old": "legacy", "new": "modern"}


def _script(host: Host) -> str:
    """A command without options and environment, which the Inspector would keep for itself."""
    command = [sys.executable, "-m", "penstock.cli", *Agents(host).command("--no-workers")]
    settings = [f"{name}={value}" for name, value in host.cli.environment.items() if "PEN" in name]
    script = host.cli.folder / "agent"
    script.write_text(f"#!/bin/sh\nexec env {shlex.join([*settings, *command])}\n")
    script.chmod(0o755)
    return str(script)


@pytest.fixture(scope="module")
def inspector() -> str:
    get_inspector.main()
    return str(get_inspector.BIN / "mcp-inspector")


@pytest.mark.parametrize("way", some_of(WAYS, "stdio-old", "http-new"))
async def test_inspector_finds_the_tools_and_calls_them(
    way: str, host: Host, inspector: str
) -> None:
    transport, _, era = way.partition("-")
    if transport == "http":
        served = host.serve("--no-workers")
        target = [f"{served.url}/mcp", "--transport", "http"]
    else:
        target = [_script(host)]

    async def inspect(*arguments: str) -> Any:
        options = ["--protocol-era", INSPECTOR_ERAS[era], "--connect-timeout", "60000", *arguments]
        ended = await asyncio.to_thread(
            subprocess.run,
            [inspector, "--cli", *target, *options],
            cwd=host.cli.folder,
            env={
                **host.cli.environment,
                "PATH": f"{get_inspector.BIN}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(host.cli.folder),  # it keeps files there
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr + ended.stdout
        return json.loads(ended.stdout)

    listed = await inspect("--method", "tools/list", "--strict")
    assert len(listed["tools"]) == 13
    call = ["--method", "tools/call", "--tool-name"]
    made = await inspect(*call, "create_task", "--tool-arg", "question=How do wheels turn?")
    assert made["structuredContent"]["status"] == "running"
    queries = 'queries=["wheels", "mills"]'
    arguments = [f"task_id={made['structuredContent']['task_id']}", queries]
    given = [part for one in arguments for part in ("--tool-arg", one)]
    queued = await inspect(*call, "queue_searches", *given)
    assert queued["structuredContent"]["queued"] == 2
    [task] = (await inspect("--method", "resources/list"))["resources"]
    assert task["title"] == "How do wheels turn?"
    [read] = (await inspect("--method", "resources/read", "--uri", task["uri"]))["contents"]
    assert "How do wheels turn?" in read["text"]
