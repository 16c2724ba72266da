"""`python -m benchmarks.http_asker WHAT URL ...`: a client of the server in a process of its own,
which prints what it has measured as JSON."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from tests.support.raw_http import Wire

PATIENCE = 60.0
OPENING = 50
"""Connections that are being opened at a time."""


def measure(*arguments: str) -> Any:
    """Have it done by another process."""
    command = [sys.executable, "-m", "benchmarks.http_asker", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


async def rate(url: str, connections: str, seconds: str, method: str, path: str, body: str) -> Any:
    """Answers a second, each connection asking again as soon as it is answered."""
    content = body.encode() or None
    counts = [0] * int(connections)
    until = time.monotonic() + float(seconds)

    async def ask(number: int) -> None:
        wire = await Wire.open(url)
        while time.monotonic() < until:
            reply = await wire.ask(method, path, content)
            assert reply.status in (200, 202), reply
            counts[number] += 1
        wire.close()

    begun = time.monotonic()
    await asyncio.gather(*(ask(number) for number in range(len(counts))))
    return sum(counts) / (time.monotonic() - begun)


async def long_polls(url: str, count: str, gate: str) -> Any:
    """Milliseconds from the handler's return to each answer."""
    wire = await Wire.open(url)
    made = await wire.ask("POST", "/v1/jobs", {"kind": "gated", "payload": {"gate": gate}})
    opening = asyncio.Semaphore(OPENING)

    async def poll() -> tuple[float, float]:
        async with opening:
            mine = await Wire.open(url)
        reply = await mine.ask("GET", f"{made.headers['location']}?wait=60")
        answered = time.time()
        mine.close()
        return answered, float(reply.json["result"])

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        polls = [group.create_task(poll()) for _ in range(int(count))]
        await _told(wire, f"penstock_http_long_polls {float(count)}")
        await asyncio.to_thread(Path(gate).touch)
    return [1000 * (answered - finished) for answered, finished in (p.result() for p in polls)]


async def streams(url: str, count: str, changes: str) -> Any:
    """Milliseconds from a change to its event at each reader of the tenant's stream."""
    opening = asyncio.Semaphore(OPENING)
    late: list[float] = []

    async def read() -> None:
        async with opening:
            mine = await Wire.open(url)
        left = int(changes)
        async for _, data in mine.events("/v1/events"):
            late.append(1000 * (time.time() - data["at"]))
            left -= 1
            if not left:
                break
        mine.close()

    wire = await Wire.open(url)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for _ in range(int(count)):
            group.create_task(read())
        await _told(wire, f"penstock_http_streams {float(count)}")
        for _ in range(int(changes)):
            await wire.ask("POST", "/v1/jobs", {"kind": "nobody.does", "log": "watched"})
            await asyncio.sleep(1)
    return late


async def _told(wire: Wire, line: str) -> None:
    while line.encode() not in (await wire.ask("GET", "/metrics")).body:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


MEASURES: dict[str, Callable[..., Awaitable[Any]]] = {
    "rate": rate,
    "long_polls": long_polls,
    "streams": streams,
}


async def main(what: str, *arguments: str) -> None:
    sys.stdout.write(json.dumps(await MEASURES[what](*arguments)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
