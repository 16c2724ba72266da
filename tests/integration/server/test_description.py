"""The API does what /openapi.json says, whatever it is sent."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.support.serve_process import Host

SECONDS = 25
MORE_SECONDS = 200
"""Where the others leave the machine no time: some requests have to be made."""
LEFT_OUT = (
    # What is valid is not all in the schema: either `text` or `url`, printable names.
    "positive_data_acceptance",
)


async def requests_made(host: Host, url: str, key: str, seconds: int) -> re.Match[str] | None:
    """How many were made, and how many were answered well; None if there was no time for any."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{url}/openapi.json",
        *("--header", f"Authorization: Bearer {key}"),
        *("--seed", "1", "--max-time", str(seconds), "--no-color"),
        *("--request-timeout", "60"),
        *("--exclude-checks", ",".join(LEFT_OUT)),
        cwd=host.cli.folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    text = said.decode()
    assert process.returncode == 0, text[-20_000:]
    counted = re.search(r"(\d+) generated, (\d+) passed", text)
    assert counted or "No test cases were generated" in text, text[-2000:]
    return counted


@pytest.mark.timeout(900)
async def test_no_request_makes_it_fail_or_answer_what_is_not_described(host: Host) -> None:
    """Thousands of requests made from the description, valid and not, and their sequences; hundreds
    where the machine has no time for more."""
    key = host.key("schemathesis", scopes="read write admin")
    served = host.serve(
        app=None,
        require_key=True,
        requests_per_minute=10**6,
        deadline_seconds=0.2,
        wait_seconds=0.2,
    )
    counted = await requests_made(host, served.url, key, SECONDS)
    counted = counted or await requests_made(host, served.url, key, MORE_SECONDS)
    assert counted is not None, "no requests were made"
    assert int(counted[1]) == int(counted[2]) > 0
    assert served.stop().code == 0
    assert "failed:" not in served.running.err.replace("failed permanently:", "")


async def test_every_route_is_described_with_its_errors(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        described = (await client.get("/openapi.json")).json()
    assert described["openapi"].startswith("3.1")
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (method, path)
            if path.startswith("/v1/"):
                assert {"401", "403", "404", "422", "429", "503"} <= set(operation["responses"])
                if method == "post":
                    names = [one["name"] for one in operation.get("parameters", ())]
                    makes = bool({"201", "202"} & set(operation["responses"]))
                    assert ("Idempotency-Key" in names) == makes, path
