"""Many clients at once, of every kind.

`python -m tests.support.load_clients URL CLIENTS SECONDS` does it
in a process of its own and prints what came of it as JSON.

Each client has a connection of its own and does one thing after another, with a little thought
between: it uploads a document, searches, makes a job and waits for it, or follows a document that
it has uploaded until its end.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.raw_http import NoStream, Reply, Wire

ROOT = Path(__file__).parents[2]
KINDS = ("upload", "upload form", "search", "job", "poll", "stream")
WEIGHTS = (15, 5, 40, 20, 10, 10)
"""A client that uploads follows the document now and then, one that makes a job waits for it."""
THINK_SECONDS = 0.25
PATIENCE = 60.0
WORDS = ("water", "turbine", "penstock", "weir", "gate", "valve", "river", "dam", "flow", "wall")


@dataclass
class Tally:
    """What came of it."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """How long each answer took, by kind of request; a stream, to its first event."""
    statuses: dict[str, int] = field(default_factory=Counter)
    """By status; `cut` where a connection broke."""
    documents: list[str] = field(default_factory=list)
    """Accepted with 202."""
    jobs: list[str] = field(default_factory=list)
    streams: int = 0
    """Opened with 200."""
    ended: int = 0
    """Of those, with exactly one `done` at their end."""

    @property
    def asked(self) -> int:
        return sum(self.statuses.values())

    @property
    def good(self) -> int:
        return sum(count for status, count in self.statuses.items() if status.startswith("2"))

    @property
    def refused(self) -> int:
        """Honestly: it says that it is too much now."""
        return self.statuses.get("429", 0) + self.statuses.get("503", 0)


def run(url: str, clients: int, seconds: float) -> Tally:
    """The load, from another process."""
    command = [sys.executable, "-m", "tests.support.load_clients", url, str(clients), str(seconds)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 2 * PATIENCE
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return Tally(**json.loads(done.stdout))


class Client:
    def __init__(self, number: int, url: str, tally: Tally) -> None:
        self._number = number
        self._url = url
        self._tally = tally
        self._random = random.Random(number)
        self._wire: Wire | None = None
        self._mine: str | None = None
        """The document that was uploaded last."""
        self._job: str | None = None

    async def work(self, until: float) -> None:
        while time.monotonic() < until:
            (kind,) = self._random.choices(KINDS, WEIGHTS)
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._do(kind)
            except NoStream as answer:
                self._tally.statuses[str(answer.status)] += 1
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self._tally.statuses["late" if isinstance(error, TimeoutError) else "cut"] += 1
                self._hang_up()
            await asyncio.sleep(self._random.expovariate(1 / THINK_SECONDS))
        self._hang_up()

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    async def _do(self, kind: str) -> None:
        match kind:
            case "upload":
                name, text = self._text()
                reply = await self._ask(kind, "POST", "/v1/documents", {"text": text, "id": name})
                self._uploaded(reply)
            case "upload form":
                await self._upload_form(kind)
            case "search":
                question = " ".join(self._random.choices(WORDS, k=3))
                await self._ask(kind, "POST", "/v1/search", {"question": question, "limit": 5})
            case "job":
                reply = await self._ask(kind, "POST", "/v1/jobs", {"kind": "add"})
                if reply.status == 202:
                    self._job = reply.json["id"]
                    self._tally.jobs.append(reply.json["id"])
            case "poll" if self._job is not None:
                await self._ask(kind, "GET", f"/v1/jobs/{self._job}?wait=30")
            case "stream" if self._mine is not None:
                await self._follow(kind, self._mine)

    def _text(self) -> tuple[str, str]:
        name = f"{self._number}-{self._random.getrandbits(48):x}"
        return name, f"Note {name}. " + " ".join(self._random.choices(WORDS, k=60)) + "."

    async def _upload_form(self, kind: str) -> None:
        name, text = self._text()
        head = f'Content-Disposition: form-data; name="file"; filename="{name}"'
        body = f"--cut\r\n{head}\r\n\r\n{text}\r\n--cut--\r\n".encode()
        form = {"Content-Type": "multipart/form-data; boundary=cut"}
        self._uploaded(await self._ask(kind, "POST", "/v1/documents", body, form))

    def _uploaded(self, reply: Reply) -> None:
        if reply.status == 202:
            self._mine = reply.json["documents"][0]["id"]
            self._tally.documents.append(reply.json["documents"][0]["id"])

    async def _ask(self, kind: str, *request: Any) -> Reply:
        begun = time.monotonic()
        if self._wire is None or self._wire.reader.at_eof():  # it was idle for too long
            self._wire = await Wire.open(self._url)
        reply = await self._wire.ask(*request)
        self._tally.seconds[kind].append(time.monotonic() - begun)
        self._tally.statuses[str(reply.status)] += 1
        if reply.headers.get("connection") == "close":
            self._hang_up()
        return reply

    async def _follow(self, kind: str, document: str) -> None:
        """On a connection of its own."""
        begun = time.monotonic()
        wire = await Wire.open(self._url)
        names: list[str] = []
        try:
            async for name, _ in wire.events(f"/v1/documents/{document}/events"):
                if not names:
                    self._tally.seconds[kind].append(time.monotonic() - begun)
                    self._tally.statuses["200"] += 1
                    self._tally.streams += 1
                names.append(name)
        finally:
            wire.close()
        self._tally.ended += names.count("done") == 1 and names[-1] == "done"


async def load(url: str, clients: int, seconds: float) -> Tally:
    tally = Tally()
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(Client(number, url, tally).work(until))
    return tally


async def settled(url: str, patience: float = PATIENCE) -> dict[str, dict[str, Any]]:
    """Every document there is, by id, once none is being processed."""
    wire = await Wire.open(url)
    try:
        return await _settled(wire, time.monotonic() + patience)
    finally:
        wire.close()


async def _settled(wire: Wire, give_up: float) -> dict[str, dict[str, Any]]:
    while (await wire.ask("GET", "/v1/documents?state=processing&limit=1")).json["documents"]:
        if time.monotonic() > give_up:
            raise TimeoutError("documents are still being processed")
        await asyncio.sleep(0.1)
    found: dict[str, dict[str, Any]] = {}
    before = ""
    while True:
        page = (await wire.ask("GET", f"/v1/documents?limit=1000{before}")).json
        found |= {one["id"]: one for one in page["documents"]}
        if page["next"] is None:
            return found
        before = f"&before={page['next']}"


def main(url: str, clients: str, seconds: str) -> None:
    tally = asyncio.run(load(url, int(clients), float(seconds)))
    sys.stdout.write(json.dumps(vars(tally)))


if __name__ == "__main__":
    main(*sys.argv[1:])
