"""A provider on loopback that counts what it is asked for, as the large ones do, and refuses what
is over its limits with a 429.

It counts a request with its bound when it arrives, and with its real use from its answer on. A test
may stand on a machine that stands still: a request that is later than a lane allows for is counted
as of the last moment that it does, and those are told.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from penstock.model.lane import SPARE
from tests.support.token_windows import Asked, most_tokens, overdraft

METERS = ("tokens", "input", "output")


@dataclass(slots=True)
class Request:
    at: float
    bound: dict[str, int]
    real: dict[str, int]
    answered: bool = False

    def counted(self, meter: str) -> Asked:
        return Asked(self.at, (self.real if self.answered else self.bound)[meter])


@dataclass
class TokenProvider:
    """`limits` are tokens, input and output of a window of so many seconds, and requests."""

    window: float
    limits: dict[str, int]
    refills: bool = False
    trusts: bool = False
    """It never refuses, and only looks on."""
    requests: list[Request] = field(default_factory=list)
    refused: int = 0
    late: int = 0
    worst: dict[str, float] = field(default_factory=dict)
    """The most that any window has seen, or how far a bucket was overdrawn."""
    url: str = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    def share(self) -> float:
        """What was really used of what was allowed, from the first request to the last."""
        lasted = max(one.at for one in self.requests) - min(one.at for one in self.requests)
        meter = next(iter(self.limits))
        allowed = self.limits[meter] * (lasted / self.window + 1)
        return sum(one.real[meter] for one in self.requests) / allowed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readline():
                length = 0
                while (line := await reader.readline()) != b"\r\n":
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                assert head
                asked = json.loads(await reader.readexactly(length))
                status, body = await self._answer(asked)
                text = json.dumps(body).encode()
                writer.write(
                    b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                    % (status, len(text), text)
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client has gone
        finally:
            writer.close()

    async def _answer(self, asked: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        now = time.time()
        latest = asked["start"] + self.window * (SPARE - 1)
        self.late += now > latest
        one = Request(min(now, latest), asked["bound"], asked["real"])
        self.requests.append(one)
        for meter, limit in self.limits.items():
            there = [other.counted(meter) for other in self.requests]
            if self.refills:
                over = overdraft(there, self.window, limit)
            else:
                over = most_tokens(there, self.window) - limit
            self.worst[meter] = max(over, self.worst.get(meter, -limit))
        if not self.trusts and max(self.worst.values()) > 1e-3:
            self.refused += 1
            self.requests.remove(one)
            return b"429 Too Many Requests", {"error": "too many tokens"}
        await asyncio.sleep(asked["seconds"])
        one.answered = True
        usage = {"prompt_tokens": one.real["input"], "completion_tokens": one.real["output"]}
        return b"200 OK", {"usage": usage}
