"""A worker process for tests: `python -m tests.support.worker OPTIONS_AS_JSON`.

Prints "ready" once it takes jobs. SIGTERM stops it with the grace of its settings, a second
one at once. Not the command line's worker: these tests are about the engine.
"""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import json
import logging
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from penstock import JobOrchestrator, Penstock
from tests.support.side_effects import Side


def obey_jumps(file: str) -> None:
    """Let the clock of this process be an hour ahead as soon as that file is there."""
    right = time.time

    def jumped() -> float:
        return right() + (3600.0 if os.path.exists(file) else 0.0)

    time.time = jumped


def tell_stacks() -> None:
    """For a test that wants to know what a process waits for."""
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)
    faulthandler.dump_traceback(file=sys.stderr)


async def work(app: Penstock, kinds: list[str] | None) -> None:
    asked = asyncio.Event()
    stops: list[asyncio.Task[None]] = []

    async with app.running(kinds=kinds) as orchestrator:

        def on_signal(orchestrator: JobOrchestrator = orchestrator) -> None:
            grace = 0.0 if stops else None
            stops.append(asyncio.ensure_future(orchestrator.stop(grace)))
            asked.set()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, on_signal)
        loop.add_signal_handler(signal.SIGUSR1, tell_stacks)
        print("ready", flush=True)
        await asked.wait()
        while not all(stop.done() for stop in stops):
            await asyncio.gather(*stops)


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if jump := os.environ.get("JUMP"):
        obey_jumps(jump)
    logging.basicConfig(format="%(levelname)s %(message)s", stream=sys.stderr)
    module = importlib.import_module(f"tests.support.apps.{options['app']}")
    app = module.build(options["url"], Side(Path(options["side"])), **options["settings"])
    asyncio.run(work(app, options["kinds"]))


if __name__ == "__main__":
    main()
