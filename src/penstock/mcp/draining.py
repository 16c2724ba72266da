"""Ends waiting tool calls when the process is stopping."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio

T = TypeVar("T")


class Stopping:
    """Set once. Waits run in their caller's own task, so that a call that is cancelled leaves
    nothing behind."""

    def __init__(self) -> None:
        self.begun = False
        self._waits: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        self.begun = True
        for wait in self._waits:
            wait.cancel()

    async def unless(self, work: Awaitable[T]) -> T | None:
        """What `work` gives; None when the stop comes before that, and `work` is then cancelled:
        only waits go in here."""
        with anyio.CancelScope() as wait:
            self._waits.add(wait)
            try:
                if self.begun:
                    wait.cancel()
                return await work
            finally:
                self._waits.discard(wait)
        return None
