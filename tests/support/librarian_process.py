"""A scripted librarian as a service: `python -m tests.support.librarian_process OPTIONS_AS_JSON`.

Prints "ready" once it listens, on the port it was given. SIGTERM ends it, SIGUSR1 makes it not
ready and SIGUSR2 ready again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from penstock import JobOrchestrator, Penstock
from penstock.errors import StoreUnavailable
from penstock.librarian.server import serving
from penstock.model.librarian import LibrarianConfig
from tests.support.librarians import Diary, ScriptedLibrarian


async def serve(url: str, diary: str, config: dict[str, Any], settings: dict[str, Any]) -> None:
    told, trouble = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    loop.add_signal_handler(signal.SIGUSR1, trouble.set)
    loop.add_signal_handler(signal.SIGUSR2, trouble.clear)

    async def ready() -> None:
        if trouble.is_set():
            raise StoreUnavailable("the test says so")

    app = Penstock(url, **settings)
    async with app:
        service = JobOrchestrator(app.queue, {}, settings=app.config.engine, works=False)
        await service.start()
        librarian = ScriptedLibrarian(Diary(Path(diary)), app.queue.now)
        where = LibrarianConfig(**config)
        async with serving(librarian, service.asking, app.queue.now, ready, where):
            print("ready", flush=True)
            await told.wait()
        await service.stop()


if __name__ == "__main__":
    logging.basicConfig(format="%(levelname)s %(message)s", stream=sys.stderr)
    asyncio.run(serve(**json.loads(sys.argv[1])))
