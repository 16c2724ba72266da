"""Stops a worker process: on a signal, at once on a second one, and in any case."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from types import FrameType
from typing import Any

from penstock.cli.errors import ExitCode
from penstock.cli.session import Session

HASTE_SECONDS = 2.0
"""Time for the process to exit after a second signal."""
EXIT_SECONDS = 5.0
"""Time for the process to exit after its work is done."""


SAME_SECONDS = 0.05
"""Signals closer than this count as one: `timeout` and process managers signal both the process and
its group."""


class Signals:
    """SIGTERM and SIGINT: the first asks to stop, the second to end at once.

    Plain signal handlers, because those of asyncio wait for an event loop that a job may block.
    Whatever happens, the process is gone HASTE_SECONDS after the second signal, and at once
    after the third.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._count = 0
        self._last = 0.0
        self.stop = asyncio.Event()
        self.hasten = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last < SAME_SECONDS:
            return
        self._last = now
        self._count += 1
        if self._count == 1:
            self._set(self.stop)
        elif self._count == 2:
            exit_after(HASTE_SECONDS, ExitCode.INTERRUPTED)
            self._set(self.hasten)
        else:
            os._exit(ExitCode.INTERRUPTED)

    def _set(self, event: asyncio.Event) -> None:
        try:
            self._loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the loop is closed: the process is ending anyway
            return

    async def wait_or(self, *ends: asyncio.Future[Any] | None) -> None:
        """Wait for the first signal, or until one of these is done."""
        told = asyncio.create_task(self.stop.wait())
        waiting = [told, *(end for end in ends if end is not None)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()

    def stopped(self, session: Session, text: str = "stopped", /, **more: Any) -> ExitCode:
        """Report that the process has finished; returns its exit code."""
        code = ExitCode.INTERRUPTED if self.hasten.is_set() else ExitCode.OK
        session.tell("stopped", text, exit_code=int(code), **more)
        exit_after(EXIT_SECONDS, code)
        return code


def exit_after(seconds: float, code: int) -> threading.Timer:
    """Exit the process after that time, if it has not exited: a handler's thread that never returns
    must not keep it alive. Cancel the returned timer to prevent that."""
    # Says nothing: writing to a pipe that nobody reads could block it too.
    timer = threading.Timer(seconds, os._exit, [code])
    timer.daemon = True
    timer.start()
    return timer
