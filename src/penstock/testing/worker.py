"""The worker process of a test on the virtual clock, which dies where it is told to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from penstock.adapters.queue import Joining
from penstock.adapters.sqlite.member import SqliteMember
from penstock.adapters.sqlite.queue import SqliteQueue
from penstock.engine.handlers import Handler, Handlers
from penstock.errors import ValidationError
from penstock.ports.queue import StepWrite
from penstock.testing.handler_threads import this_thread
from penstock.testing.loop import SimulatedLoop, current

POINT = re.compile(r"start|request|end|(step|recorded):.+")


class SimulatedWorker:
    """Kills worker processes at named points of their runs, as SIGKILL does: nothing more of the
    process happens, what it has stored stays, and a new process starts half a second later."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._armed: dict[str, int] = {}
        self.deaths: list[str] = []
        """The points at which processes have died, in order."""

    def killed_at(self, point: str, *, times: int = 1) -> None:
        """Kill the process that comes to this point next, `times` times. Points are:

        - `start`: the handler is about to be called;
        - `request`: a request of `ctx.http` was answered, and nobody has seen the answer;
        - `step:NAME`: the function of the step has returned, and its result is not recorded;
        - `recorded:NAME`: it is recorded, and the handler has not gone on;
        - `end`: the handler has returned, and the job is not settled.
        """
        if not POINT.fullmatch(point):
            raise ValidationError(
                "a worker can be killed at start, request, step:NAME, recorded:NAME or end, not at "
                f"{point!r}"
            )
        if times < 1:
            raise ValidationError(f"times is 1 or more, not {times!r}")
        self._armed[point] = self._armed.get(point, 0) + times

    @property
    def unreached(self) -> list[str]:
        """Points at which a process was to be killed, and that no run has come to."""
        return [point for point, times in self._armed.items() if times]

    async def reach(self, *points: str) -> None:
        """A run comes to these points; it does not return where that is its end."""
        if self._dies(points):
            await self._loop.create_future()

    def _dies(self, points: Sequence[str]) -> bool:
        for point in points:
            if self._armed.get(point):
                self._armed[point] -= 1
                self.deaths.append(point)
                self._loop.kill(current.get())
                return True
        return False

    def doomed(self, handlers: Handlers) -> Handlers:
        """These handlers, each with a point before and one after it."""
        return Handlers(
            {kind: self._doomed(handler) for kind, handler in handlers.items()}, handlers.settings
        )

    def _doomed(self, handler: Handler) -> Handler:
        function: Callable[..., Any] = handler.function

        @wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            await self.reach("start")
            result = await function(*args, **kwargs)
            await self.reach("end")
            return result

        @wraps(function)
        def run_in_thread(*args: Any, **kwargs: Any) -> Any:
            self._reach_in_thread("start")
            result = function(*args, **kwargs)
            self._reach_in_thread("end")
            return result

        return replace(handler, function=run if handler.is_async else run_in_thread)

    def _reach_in_thread(self, point: str) -> None:
        thread = this_thread()
        if self._dies([point]) and thread is not None:
            thread.wait()


class MortalMember(SqliteMember):
    """The membership of a worker process that may die before or after it has recorded a step."""

    def __init__(self, queue: SqliteQueue, joining: Joining, worker: SimulatedWorker) -> None:
        super().__init__(queue, joining)
        self._worker = worker

    def record(self, writes: Sequence[StepWrite]) -> asyncio.Future[list[bool]]:
        return asyncio.ensure_future(self._record(writes))

    async def _record(self, writes: Sequence[StepWrite]) -> list[bool]:
        names = [write.row.name for write in writes if write.row.result is not None]
        await self._worker.reach(*(f"step:{name}" for name in names))
        stored = await super().record(writes)
        await self._worker.reach(*(f"recorded:{name}" for name in names))
        return stored
