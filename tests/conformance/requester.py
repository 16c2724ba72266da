"""A server process that begins requests and is gone before it has answered any.

    python -m tests.conformance.requester BACKEND URL NAME LEASE KEY...

It says that it is ready, waits for a line, and begins a request for each key, as NAME; prints for
each whether it was begun, then kills itself.
"""

import asyncio
import os
import signal
import sys

from penstock.model.access import Begun
from tests.conformance.access_support import access_at, begin
from tests.conformance.support import PATIENT


async def main(backend: str, url: str, name: str, lease: float, keys: list[str]) -> None:
    for where, limit, value in PATIENT:
        setattr(where, limit, value)
    async with access_at(backend, url) as access:
        print("ready", flush=True)
        sys.stdin.readline()
        outcomes = [await begin(access, key, name, lease=lease) for key in keys]
        print(*(int(isinstance(one, Begun)) for one in outcomes), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:]))
