"""A process that stores orders, each with its job in one transaction, until it is killed.

`python -m tests.support.orderer '{"url": ..., "way": ..., "committed": FILE, "hold_after": N}'`:
after so many it leaves a transaction open between its job and its commit, and waits for its end.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from typing import Any

from penstock import Penstock
from tests.support.callers import POSTGRES, SQLITE


async def order(url: str, way: str, committed: str, hold_after: int | None) -> None:
    note = os.open(committed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    caller_of = {**POSTGRES, **SQLITE}[way]
    async with Penstock(url, durable=False) as app, caller_of(url) as caller:
        print("ready", flush=True)
        for n in itertools.count():
            number = f"{os.getpid()}-{n}"
            if way == "asyncpg_connection" and n:
                await caller.conn.execute("BEGIN")
            await caller.execute(f"INSERT INTO penstock.orders VALUES ('{number}')")
            await app.enqueue("ship", {"order": number}, log="orders", conn=caller.conn)
            if n == hold_after:
                os.write(note, b"held\n")
                await asyncio.Event().wait()
            await caller.commit()
            os.write(note, f"{number}\n".encode())


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    asyncio.run(order(**options))


if __name__ == "__main__":
    main()
