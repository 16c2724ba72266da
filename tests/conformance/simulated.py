"""The model of a queue on a server (`penstock.testing.server`) as one more queue of the suite: what
every queue promises, it keeps too. The network is sound here, but that it does requests twice
where it may.

A test of it runs on a simulated loop, in a process of its own of a simulated computer, and by a
virtual clock, which `time` tells as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.queue import Member
from penstock.testing.loop import SimulatedLoop, SimulatedProcess, current
from penstock.testing.machine import Machine, scratch_folder
from penstock.testing.model import ReferenceModel
from penstock.testing.server import Network, ServerQueue

NAME = "simulated"
DOUBLED = 0.5
"""The share of requests that are done twice, of those that may be."""


class TestLoop(SimulatedLoop):
    """A simulated loop that pytest runs a test on."""

    __test__ = False

    def run_until_complete(self, future: Any) -> Any:
        self.steps = 0
        done: asyncio.Future[Any] = asyncio.ensure_future(future, loop=self)
        self.run_until(done.done, inf)
        return done.result()

    def set_debug(self, enabled: bool) -> None:
        """It has no such mode."""

    async def shutdown_asyncgens(self) -> None:
        """They end with the loop."""

    async def shutdown_default_executor(self) -> None:
        """There is none."""


class SimulatedServer:
    """The computer that a test runs on, and the server that it talks to."""

    def __init__(self, folder: Path) -> None:
        self.machine = machine = Machine(0, folder, server=True)
        self.loop = machine.loop = TestLoop(machine.chance, machine._bury)  # type: ignore[abstract]
        self.network = Network(machine)
        self.network.doubled = DOUBLED
        self._model = ReferenceModel(
            machine.monotonic, machine.processes, True, now=machine.server_time, server=True
        )
        """Told of what happens, and not asked."""

    def queue(self, **options: Any) -> ServerQueue:
        return ServerQueue(self.machine, self._model, self.network, **options)

    async def doomed(self, work: Coroutine[Any, Any, Member]) -> DoomedProcess:
        """A process of its own that does this, and waits for its end."""
        process = self.machine.process("doomed")
        return DoomedProcess(self.loop, process, (await self.loop.start(process, work)).id)


@dataclass(slots=True, frozen=True)
class DoomedProcess:
    """See `tests.conformance.support.Doomed`."""

    _loop: SimulatedLoop
    _process: SimulatedProcess
    member: str

    async def kill(self) -> None:
        self._loop.kill(self._process)


_here: list[SimulatedServer] = []


def here() -> SimulatedServer:
    """That of the test which is running."""
    return _here[-1]


def new_loop() -> asyncio.AbstractEventLoop:
    """For the test that is about to run."""
    return here().loop if _here else asyncio.new_event_loop()


@contextmanager
def simulated() -> Iterator[None]:
    """Have all that follows happen on a computer of its own."""
    with scratch_folder() as folder:
        server = SimulatedServer(folder)
        machine = server.machine
        token = current.set(machine.process("test"))
        _here.append(server)
        try:
            with machine.running(), pytest.MonkeyPatch.context() as patch:
                patch.setattr(time, "time", machine.server_time)
                patch.setattr(time, "monotonic", machine.monotonic)
                yield
                machine.close()
        finally:
            _here.remove(server)
            current.reset(token)
