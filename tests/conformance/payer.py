"""A worker process that pays in a step with `transaction=True`, and kills itself in it or after it.

python -m tests.conformance.payer URL before|after
"""

import asyncio
import os
import signal
import sys
from typing import Any

from penstock import JobContext, Penstock
from penstock.adapters.postgres.queue import PostgresQueue
from penstock.ports.queue import JobQueue
from tests.conformance.support import BACKENDS, KIND, LONG, PATIENT, no_limits

INSERT = "INSERT INTO penstock.effects VALUES ($1)"


def payer(queue: JobQueue, die: str = "") -> Penstock:
    """The app, on an open queue."""
    assert isinstance(queue, PostgresQueue)
    insert = queue.database.sql(INSERT)
    app = Penstock("sqlite:///not-used.db", lease_seconds=LONG, retry_base_seconds=0.01)

    async def pay(conn: Any, amount: int) -> int:
        await conn.execute(insert, amount)
        if die == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        return amount

    @app.job(KIND)
    async def handler(ctx: JobContext, amount: int) -> list[int]:
        paid = await ctx.step("pay", pay, amount, transaction=True)
        if die == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return [paid, ctx.attempt]

    return app.on_queue(queue)


async def main() -> None:
    url, die = sys.argv[1:]
    for where, name, value in PATIENT:
        setattr(where, name, value)
    queue = BACKENDS["postgres"].queue(url, lane_config=no_limits)
    await queue.open()
    await payer(queue, die).orchestrator().start()
    await asyncio.sleep(LONG)


if __name__ == "__main__":
    asyncio.run(main())
