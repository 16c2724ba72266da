"""A process that enqueues jobs of one burst, and prints a line for each that was stored: its
number, the job's id, and when it was sent and acknowledged.

    python -m tests.conformance.burster BACKEND URL NUMBER
"""

import asyncio
import json
import sys
import time

from penstock.model.ids import new_id
from penstock.ports.queue import Debounce, NewJob, NewJobs
from tests.conformance.support import BACKENDS, KIND, PATIENT, no_limits

MANY = 60


async def main(backend: str, url: str, number: str) -> None:
    for where, name, value in PATIENT:
        setattr(where, name, value)
    queue = BACKENDS[backend].queue(url, lane_config=no_limits)
    await queue.open()
    for n in range(MANY):
        payload = json.dumps({"process": int(number), "n": n})
        items = [NewJob(new_id(), payload, None, "", burst="k")]
        sent = time.monotonic()
        batch = NewJobs(KIND, items, timeout=30.0, max_retries=3, debounce=Debounce(0.002, 0.02))
        (job,) = await queue.enqueue(batch)
        print(n, job.id, sent, time.monotonic(), flush=True)
    await queue.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
