"""The upkeep of a PostgreSQL queue: one transaction for each process that is taken over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.adapters.postgres import takeover
from penstock.adapters.postgres.database import Pool, own
from penstock.adapters.postgres.fairness import place
from penstock.adapters.sql.chores import Placed
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.upkeep import SqlUpkeep

if TYPE_CHECKING:
    from penstock.adapters.postgres.queue import PostgresQueue


class Upkeep(SqlUpkeep):
    """See `SqlUpkeep`."""

    def __init__(self, queue: PostgresQueue, number: int, kinds: Sequence[str]) -> None:
        super().__init__(queue, number, kinds)
        self._queue = queue

    async def _take_over(self, found: Sequence[tuple[int, str]]) -> None:
        queue = self._queue
        for number, life in found:
            await queue.write(partial(takeover.dead, folder=queue.folder, number=number, life=life))
        await self.end_lapsed(queue)

    async def end_lapsed(self, writer: PostgresQueue | Pool) -> None:
        """End every membership that was not renewed in time, each in a transaction of its own."""
        queue = self._queue
        rows = await queue.fetch(takeover.LAPSED_MEMBERS, queue.now(), self._number)
        for number, life in rows:
            await writer.write(
                partial(takeover.lapsed, folder=queue.folder, number=number, life=life)
            )

    async def _place(self, tx: Sql, jobs: Sequence[Placed]) -> None:
        await place(own(tx), jobs, self._queue.weights)
