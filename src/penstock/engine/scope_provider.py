"""Opens request scopes: through the membership of the process's workers, or through its own if it
has none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from penstock.engine.orchestrator import JobOrchestrator
from penstock.engine.request_scope import RequestScope
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue


class RequestScopes:
    """Lets code that runs in no job make requests under the limits of lanes."""

    def __init__(
        self, queue: JobQueue, settings: EngineConfig, orchestrators: Iterable[JobOrchestrator]
    ) -> None:
        """It goes through one of `orchestrators`, which may change, while any of them runs."""
        self._queue = queue
        self._settings = settings
        self._known = orchestrators
        self._own: asyncio.Task[JobOrchestrator] | None = None

    @asynccontextmanager
    async def question(self, tenant: str, seconds: float) -> AsyncIterator[RequestScope]:
        """Requests with permits, for so long. QueueError while the queue cannot be reached."""
        deadline = self._queue.now() + seconds
        working = next((one for one in self._known if one.receives), None)
        member = working or await self._member()
        with member.request_scope(tenant, deadline) as scope:
            yield scope

    async def _member(self) -> JobOrchestrator:
        # In a task of its own: whoever asked first may have no time to see it through.
        if self._own is None or (self._own.done() and self._own.exception() is not None):
            self._own = asyncio.create_task(self._join(), name="penstock-request-scopes")
        return await asyncio.shield(self._own)

    async def _join(self) -> JobOrchestrator:
        member = JobOrchestrator(self._queue, {}, settings=self._settings, works=False)
        await member.start()
        return member

    async def close(self) -> None:
        own, self._own = self._own, None
        if own is None:
            return
        await asyncio.wait([own])
        if own.exception() is None:
            await own.result().stop(grace=0)
