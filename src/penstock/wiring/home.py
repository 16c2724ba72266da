"""The event loop and the process in which an app is open: nothing it has open works elsewhere."""

from __future__ import annotations

import asyncio

from penstock import runtime
from penstock.errors import QueueError


class Home:
    """Where an app was opened."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._process = runtime.process_id()

    def check(self) -> None:
        """Raise QueueError in a process that was forked from that of its home, and where the loop
        has ended."""
        if self._process != runtime.process_id():
            raise QueueError(
                "this process was forked from one in which the app was open, and its connections "
                "are not to be shared: close the app before forking (then each process opens it "
                "for itself), or start the process by spawning it"
            )
        if self.loop.is_closed():
            raise QueueError("the event loop in which the app was opened has ended")

    def check_awaited(self) -> None:
        """QueueError in another event loop: what is awaited there is not woken."""
        if self.loop is not asyncio.get_running_loop() and not self.loop.is_closed():
            raise QueueError(
                "the app is open in another event loop: await it there, or call app.sync()"
            )

    def check_here(self) -> None:
        """The same as `check`, and QueueError in another event loop."""
        if self.loop.is_closed():  # it was never closed, and cannot be any more
            return
        self.check()
        if self.loop is not asyncio.get_running_loop():
            raise QueueError(
                "the app is open in another event loop, perhaps by app.sync(); close it there "
                "before it is opened here"
            )
