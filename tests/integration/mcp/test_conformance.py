"""The conformance suite of MCP, of those who write the protocol, against the real server and queue:
what fails is known, and why."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.serve_process import Host
from tools import get_inspector

pytestmark = [
    pytest.mark.timeout(1800),  # the first time it is downloaded
    pytest.mark.skipif(shutil.which("npm") is None, reason="the suite needs npm"),
]
ROOT = Path(__file__).parents[3]
EXPECTED = yaml.safe_load((ROOT / "tests/data/mcp_conformance.yaml").read_text())
TASKS = {
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
}


@pytest.mark.parametrize("revision", EXPECTED)
async def test_conformance_is_as_expected(revision: str, host: Host) -> None:
    await asyncio.to_thread(get_inspector.main)
    host.cli.environment["PYTHONPATH"] = str(ROOT)
    served = host.serve(app="tests.support.apps.conformance:app")
    kept = host.cli.folder / "conformance"
    # It ends with an error where anything fails; what failed is read from its files.
    ran = await asyncio.to_thread(
        subprocess.run,
        [
            str(get_inspector.BIN / "conformance"),
            *("server", "--url", f"{served.url}/mcp", "--requirements", revision, "-o", str(kept)),
        ],
        cwd=host.cli.folder,
        env={**os.environ, "PATH": f"{get_inspector.BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    passed: set[str] = set()
    failed: dict[str, list[str]] = {}
    for file in kept.glob("server-*/checks.json"):
        found = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)
        assert found, file.parent.name
        checks = json.loads(file.read_text())
        wrong = [
            f"{one['id']}: {one.get('errorMessage')}"
            for one in checks
            if one["status"] == "FAILURE"
        ]
        if wrong:
            failed[found[1]] = wrong
        elif any(one["status"] == "SUCCESS" for one in checks):
            passed.add(found[1])
    expected = EXPECTED[revision]
    assert all(reason.strip() for reason in expected.values())
    surprises = {name: failed[name] for name in failed.keys() - expected.keys()}
    assert not surprises, f"{surprises}\n{ran.stdout[-2000:]}"
    assert not passed & expected.keys(), "these are expected to fail, and pass"
    assert failed.keys() == expected.keys(), "these are expected to fail, and were not run"
    assert "tools-list" in passed
    if revision == "2026-07-28":
        assert passed >= TASKS
