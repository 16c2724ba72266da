"""Renews leases from any thread, over its own connection and event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from penstock.adapters.postgres.database import COMMAND_SECONDS, CONNECT_SECONDS, Database, Pool
from penstock.aio import end_tasks
from penstock.errors import QueueUnavailable
from penstock.ports.queue import Lease


class Renewal:
    """Extends the lease of one membership. `renew` blocks; nothing here waits for the event loop
    that handlers run in."""

    def __init__(self, database: Database, number: int, member: str, lease_seconds: float) -> None:
        self._database = database
        self._number, self._member = number, member
        self._lease_seconds = lease_seconds
        self._pool = Pool(database, "renew", 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._left = False

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        """False: the membership lapsed."""
        if self._left:
            return False
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop,), name="penstock-renew-loop", daemon=True
            )
            self._thread.start()
        done = asyncio.run_coroutine_threadsafe(self._renew(status, holds), self._loop)
        try:
            return done.result(CONNECT_SECONDS + 2 * COMMAND_SECONDS)
        except CancelledError:
            raise QueueUnavailable("the membership has been left during a renewal") from None
        except TimeoutError:
            done.cancel()
            place = self._database.address.shown
            raise QueueUnavailable(f"{place} did not answer a renewal in time") from None

    async def _renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        sql, clock = self._database.sql, self._database.clock
        async with self._pool.connection() as connection:
            sent = clock.local()
            now = await connection.fetchval(
                sql("renew"),
                self._number,
                self._member,
                json.dumps(dict(status)),
                self._lease_seconds,
            )
            if now is None:
                return False
            clock.sample(sent, now)
            if holds:
                refs = zip(*sorted(lease.ref for lease in holds), strict=True)
                await connection.execute(sql("hold"), *refs, now + self._lease_seconds, now)
        return True

    def close(self) -> None:
        """Blocks for a moment; not from inside an event loop."""
        self._left = True
        loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            self._loop = self._thread = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            loop.run_until_complete(self._end())
        finally:
            loop.close()

    async def _end(self) -> None:
        """Leave nothing behind: neither a renewal that took too long nor what the driver began."""
        me = asyncio.current_task()
        await end_tasks(asyncio.all_tasks() - {me})
        await self._pool.close()
        await end_tasks(asyncio.all_tasks() - {me})
