"""`manage.py penstock_worker`: a process that runs tasks."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand

from penstock.aio import end_tasks
from penstock.app import Penstock
from penstock.contrib.django.backend import Backend
from penstock.contrib.django.interface import tasks


class Command(BaseCommand):  # type: ignore[misc]
    """Runs the tasks of a backend until SIGTERM or Ctrl-C."""

    help = "Run tasks in this process, until SIGTERM or Ctrl-C: then what runs may finish."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--backend", default="default", help="A key of TASKS (default).")
        parser.add_argument(
            "--queue", action="append", default=[], help="Of a queue that QUEUES does not name."
        )
        parser.add_argument("--drain", action="store_true", help="Exit when no tasks remain.")

    def handle(self, *, backend: str, queue: list[str], drain: bool, **options: Any) -> None:
        chosen = tasks().task_backends[backend]
        if not isinstance(chosen, Backend):
            self.stderr.write(f"TASKS[{backend!r}] is not penstock.contrib.django.Backend")
            raise SystemExit(2)
        app = chosen.app(*queue)
        self.stdout.write(f"running {', '.join(sorted(app.handlers))}")
        asyncio.run(_serve(app, drain=drain))


async def _serve(app: Penstock, *, drain: bool) -> None:
    """Run jobs until told to stop, until none are left, or until the engine ends."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with app.running() as orchestrator:
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
        if drain:
            waits.append(asyncio.create_task(app.drain()))
        assert orchestrator.dispatcher_task is not None
        await asyncio.wait(
            [*waits, orchestrator.dispatcher_task], return_when=asyncio.FIRST_COMPLETED
        )
        await end_tasks(waits)
