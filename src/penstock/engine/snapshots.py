"""Waits for snapshots of what has a log: research tasks, answers."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from penstock.engine.waiters import Found, LogVersion, Waiters
from penstock.errors import StoreUnavailable
from penstock.ports.queue import JobQueue

logger = logging.getLogger("penstock")


class SnapshotWaiters(Waiters[LogVersion, Found], ABC):
    """Snapshots of things that have a log, each as of a version of it. One read serves everyone who
    waits for the same."""

    def __init__(self, queue: JobQueue) -> None:
        super().__init__(queue, self._changed)

    @abstractmethod
    def log_of(self, name: str) -> str: ...

    @abstractmethod
    async def read(self, tenant: str, name: str, version: int) -> Found:
        """The thing as it is now, which is at `version` or later."""

    async def get(self, tenant: str, name: str) -> Found:
        """The snapshot now."""
        # The version first: what changes after it is told again.
        (version,) = await self._queue.versions([(tenant, self.log_of(name))])
        return await self.read(tenant, name, version)

    async def after(self, tenant: str, name: str, version: int, timeout: float) -> Found | None:
        """The snapshot once its version is over that; None: it was not in this time."""
        try:
            return await self.wait((tenant, name, version), timeout)
        except TimeoutError:
            return None

    async def _changed(self, keys: list[LogVersion]) -> dict[LogVersion, Found]:
        things = list({key[:2] for key in keys})
        logs = [(tenant, self.log_of(name)) for tenant, name in things]
        newest = dict(zip(things, await self._queue.versions(logs), strict=True))
        changed = [key for key in keys if newest[key[:2]] > key[2]]
        names = list({key[:2] for key in changed})
        read = await asyncio.gather(*(self._try(*one, newest[one]) for one in names))
        found = {one: seen for one, seen in zip(names, read, strict=True) if seen is not None}
        return {key: found[key[:2]] for key in changed if key[:2] in found}

    async def _try(self, tenant: str, name: str, version: int) -> Found | None:
        try:
            return await self.read(tenant, name, version)
        except StoreUnavailable as error:  # whoever waits is told when it is back
            logger.debug("cannot look for waiters: %s", error)
            return None
