"""The upkeep of a SQLite queue: one transaction for all processes that are taken over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.adapters.sql.chores import Placed
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.upkeep import SqlUpkeep
from penstock.adapters.sqlite import takeover
from penstock.adapters.sqlite.fairness import place
from penstock.adapters.sqlite.transaction import Transaction, own

if TYPE_CHECKING:
    from penstock.adapters.sqlite.queue import SqliteQueue


class Upkeep(SqlUpkeep):
    """See `SqlUpkeep`."""

    def __init__(self, queue: SqliteQueue, number: int, kinds: Sequence[str]) -> None:
        super().__init__(queue, number, kinds)
        self._queue = queue

    async def _take_over(self, found: Sequence[tuple[int, str]]) -> None:
        def end(tx: Transaction) -> None:
            for number, life in found:
                takeover.dead(tx, self._queue.folder, number, life)
            takeover.lapsed(tx, self._queue.folder, self._number)

        await self._queue.write(end)

    async def _place(self, tx: Sql, jobs: Sequence[Placed]) -> None:
        place(own(tx), jobs, self._queue.weights)
