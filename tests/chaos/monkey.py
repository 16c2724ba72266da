"""Does something terrible to a worker process or to the server, again and again."""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from penstock.errors import QueueUnavailable
from tests.chaos.grounds import Ground
from tests.chaos.previous import environment
from tests.support.worker_processes import Farm, WorkerProcess

T = TypeVar("T")

PROCESSES = 4
LEASE_SECONDS = 1.5
PAST_THE_LEASE = 2.5


class Monkey:
    """What it does, to whom and when is drawn from a seed."""

    def __init__(
        self,
        farm: Farm,
        ground: Ground,
        seed: int,
        previous: Path | None = None,
        app: str = "chaos",
    ) -> None:
        self._farm = farm
        self._app = app
        self._previous = previous
        self._starts = itertools.count()
        self._ground = ground
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.workers: list[WorkerProcess] = []

    async def start(self) -> None:
        self.workers = list(await asyncio.gather(*(self._start() for _ in range(PROCESSES))))

    async def _start(self) -> WorkerProcess:
        """A worker process does not start while the queue is gone; then it is started again.
        Every other one runs the previous code, where there is one."""
        variables = {}
        if self._previous is not None and next(self._starts) % 2:
            variables = environment(self._previous)
        while True:
            try:
                return await self._farm.start(self._app, environment=variables)
            except AssertionError as error:
                if "QueueUnavailable" not in str(error):
                    raise

    async def run(self, most: int) -> None:
        while sum(self.done.values()) < most:
            await asyncio.sleep(self._random.uniform(0.05, 0.3))  # chaos has no condition
            server = self._ground.strikes and self._random.random() < 0.4
            what = self._random.choice(
                self._ground.strikes if server else ["SIGKILL", "SIGKILL", "SIGTERM", "SIGSTOP"]
            )
            if server:
                self.done[what] += 1
                await self._ground.strike(what, self._random)
            else:
                await self._strike(what)

    async def _strike(self, what: str) -> None:
        place = self._random.randrange(PROCESSES)
        worker = self.workers[place]
        if what == "SIGSTOP":
            # Sometimes past the lease: then others take its jobs, and it must find out.
            seconds = self._random.choice([0.1, PAST_THE_LEASE])
            self.done["SIGSTOP past the lease" if seconds > LEASE_SECONDS else what] += 1
            await worker.freeze()
            await asyncio.sleep(seconds)
            worker.send(signal.SIGCONT)
            return
        self.done[what] += 1
        worker.send(signal.Signals[what])
        code = await worker.exit()
        assert code == (0 if what == "SIGTERM" else -signal.SIGKILL), worker.log[-2000:]
        self.workers[place] = await self._start()


async def in_the_end(action: Callable[[], Awaitable[T]], timeout: float) -> T:
    """Its outcome, as soon as the queue lets it have one."""
    give_up = time.monotonic() + timeout
    while True:
        try:
            async with asyncio.timeout(give_up - time.monotonic()):
                return await action()
        except QueueUnavailable:
            assert time.monotonic() < give_up, "the queue did not come back"
            await asyncio.sleep(0.1)
