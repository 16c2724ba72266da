"""A process that enqueues batches until it is killed, noting each one it was told is stored.

`python -m tests.support.enqueuer '{"url": ..., "acknowledged": FILE, "size": N}'`
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from penstock import Penstock


async def enqueue(url: str, acknowledged: str, size: int) -> None:
    note = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    async with Penstock(url, durable=False) as app:
        print("ready", flush=True)
        batch = 0
        while True:
            batch += 1
            log = f"{os.getpid()}-{batch}"
            await app.enqueue_many("work", [{"n": n} for n in range(size)], log=log)
            os.write(note, f"{log}\n".encode())


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    asyncio.run(enqueue(**options))


if __name__ == "__main__":
    main()
