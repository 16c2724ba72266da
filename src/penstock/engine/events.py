"""Events between the parts of a worker process."""

from __future__ import annotations

import asyncio

from penstock import runtime


class EngineEvents:
    """Events that one part sets and another awaits, so that no part has to call one that was
    constructed after it."""

    def __init__(self) -> None:
        self.due = asyncio.Event()
        """For the dispatcher: there is something to settle, or to claim."""
        self.freed = asyncio.Event()
        """For a stop: a run has ended, or has given up its worker."""
        self.vacant = asyncio.Event()
        """For the workers: a job has given up its worker, and another is to take its place."""
        self.doubted = asyncio.Event()
        """For the listener for cancels: a job that was said to be cancelled has been claimed."""
        self.lapsed = asyncio.Event()
        """For the membership: others have taken over what this process held."""
        self.status = runtime.thread_event()
        """For the renewer, from any thread: the status has changed in a way others should see."""
