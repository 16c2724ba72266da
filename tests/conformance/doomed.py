"""A worker process that claims jobs, starts some of them, and is gone.

    python -m tests.conformance.doomed BACKEND URL --claim 5 --start 2 [--lanes 3] [--wait]

It kills itself with SIGKILL; with --wait it first says so and waits for a line.
"""

import argparse
import asyncio
import os
import signal
import sys

from tests.conformance.support import BACKENDS, KIND, LONG, PATIENT, exchange, no_limits, want


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")
    parser.add_argument("url")
    parser.add_argument("--claim", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=0, help="how many of them in lanes")
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args()
    for where, name, value in PATIENT:
        setattr(where, name, value)
    queue = BACKENDS[options.backend].queue(options.url, lane_config=no_limits)
    await queue.open()
    member = await queue.join([KIND], 10, LONG)
    wanted = want(options.claim - options.lanes)._replace(lanes=options.lanes)
    leases = (await exchange(member, wanted=wanted)).leases
    assert len(leases) == options.claim
    for lease in leases[: options.start]:
        member.mark_started(lease)
    if options.wait:
        print(member.id, flush=True)
        sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main())
