"""A process that runs no jobs and holds permits.

`python -m tests.support.permit_holder OPTIONS_AS_JSON`

Prints "ready" once it holds them all. SIGTERM ends it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack
from typing import Any

from penstock import JobOrchestrator, Penstock


async def hold(url: str, lane: str, permits: int, settings: dict[str, Any]) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    app = Penstock(url, **settings)
    async with app, AsyncExitStack() as held:
        service = JobOrchestrator(app.queue, {}, settings=app.config.engine, works=False)
        await service.start()
        held.push_async_callback(service.stop)
        for _ in range(permits):
            visit = service.asking("default", app.queue.now() + 60)
            await held.enter_async_context(visit.lanes.request(lane))
        print("ready", flush=True)
        await told.wait()


if __name__ == "__main__":
    asyncio.run(hold(**json.loads(sys.argv[1])))
