"""An embedder on loopback for all contenders: OpenAI's `/v1/embeddings`, 50 ms for each request.

It is a process of its own, counts what it is asked for, and spends as little as it can on vectors:
each text gets one of a few that were made beforehand, by its checksum.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import urllib.request
import zlib
from types import TracebackType
from typing import Any, NamedTuple, Self

from benchmarks.processes import ROOT

DIMENSIONS = 384
SECONDS = 0.05
BATCH = 50
"""Texts in a request at most, of every contender."""
PARALLEL = 4
"""Requests under way at most, of every contender; the default of our lane."""
MODEL = "loopback"
DIFFERENT = 64


class Asked(NamedTuple):
    """Since it was last asked for."""

    requests: int
    texts: int
    most_open: int


class Embedder:
    """The server, for as long as the block lasts."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdout is not None
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()

    def asked(self) -> Asked:
        with urllib.request.urlopen(f"{self.url}/asked") as answer:  # noqa: S310 (it is ours)
            return Asked(*json.load(answer))

    def config(self) -> dict[str, Any]:
        return {
            "provider": "openai",
            "base_url": self.url,
            "model": MODEL,
            "dimensions": DIMENSIONS,
        }


class _Server:
    def __init__(self) -> None:
        chance = random.Random(1)
        self._vectors = [
            json.dumps([round(chance.gauss(0, 1), 6) for _ in range(DIMENSIONS)])
            for _ in range(DIFFERENT)
        ]
        self._requests = self._texts = self._open = self._most = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await self._embeddings(reader, head) if b"POST" in head else self._asked()
                headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    def _asked(self) -> bytes:
        asked = [self._requests, self._texts, self._most]
        self._requests = self._texts = self._most = 0
        return json.dumps(asked).encode()

    async def _embeddings(self, reader: asyncio.StreamReader, head: bytes) -> bytes:
        lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
        length = next(int(value) for name, _, value in lines if name == b"content-length")
        self._open += 1
        self._most = max(self._most, self._open)
        try:
            ready = asyncio.get_running_loop().time() + SECONDS
            texts = json.loads(await reader.readexactly(length))["input"]
            self._requests += 1
            self._texts += len(texts)
            vectors = (self._vectors[zlib.crc32(text.encode()) % DIFFERENT] for text in texts)
            rows = (f'{{"index":{at},"embedding":{one}}}' for at, one in enumerate(vectors))
            body = f'{{"data":[{",".join(rows)}]}}'.encode()
            await asyncio.sleep(ready - asyncio.get_running_loop().time())
            return body
        finally:
            self._open -= 1


async def _serve() -> None:
    server = await asyncio.start_server(_Server().answer, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
