"""A worker process that holds jobs, says which membership it is, and kills itself with SIGKILL at
the next line that it is sent.

    python -m tests.conformance.doomed BACKEND URL CLAIMS STARTS LANES
"""

import asyncio
import os
import signal
import sys

from tests.conformance.support import BACKENDS, PATIENT, hold, no_limits


async def main(backend: str, url: str, *counts: str) -> None:
    for where, name, value in PATIENT:
        setattr(where, name, value)
    claims, starts, lanes = map(int, counts)
    queue = BACKENDS[backend].queue(url, lane_config=no_limits)
    print((await hold(queue, claims, starts, lanes)).id, flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
