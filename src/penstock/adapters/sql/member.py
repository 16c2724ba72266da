"""The parts of a worker process's membership that both databases share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock import runtime
from penstock.adapters.life_file import open_life_file
from penstock.adapters.queue import Joining, QueueMember
from penstock.adapters.sql import lanes, takeover
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.queue import SqlQueue
from penstock.adapters.sql.takeover import STOPPED, boot_id, sweep_files
from penstock.adapters.sql.upkeep import Upkeep
from penstock.lanes.breaker import SUSPICION_SECONDS
from penstock.ports.queue import Lease
from penstock.ports.steps import Consumed, StepRow


class Renews(Protocol):
    """Extends the lease of one membership."""

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool: ...

    def close(self) -> None:
        """May block for a moment."""
        ...


class SqlMember(QueueMember):
    """The common part of `penstock.ports.queue.Member`."""

    _renewal: Renews

    def __init__(self, queue: SqlQueue, joining: Joining) -> None:
        super().__init__(joining)
        self._shared = queue

    async def _enter(self) -> int:
        """Store the membership in a transaction."""
        return await self._shared.change(self._insert)

    async def join(self) -> None:
        self._life = open_life_file(self._shared.folder)
        try:
            self._number = await self._enter()
        except BaseException:
            self._life.close()
            raise
        self._upkeep = Upkeep(self._shared, self._number, self._kinds)

    def now(self) -> float:
        return self._shared.now()

    async def _insert(self, tx: Sql) -> int:
        """Store the membership; its number."""
        (number,) = await tx.one(
            "join",
            id=self.id,
            host=runtime.host_name(),
            pid=runtime.process_id(),
            boot=boot_id(),
            life=self._life.name,
            kinds=self._kinds,
            max_workers=self._max_workers,
            now=tx.now,
            lease_until=tx.now + self._lease_seconds,
        )
        await lanes.try_at_once(self._shared.lane_rows(tx))
        # Slots may have been freed while nobody handled these kinds.
        await tx.execute("wake_kinds", kinds=self._kinds)
        return int(number)

    async def leave(self) -> None:
        self._still_started()
        try:
            await self._shared.change(self._end)
        finally:
            try:
                await self._close()
            finally:
                self._life.close()
        sweep_files(self._shared.folder, await self._shared.life_names())

    async def _end(self, tx: Sql) -> None:
        rows = self._shared.lane_rows(tx)
        await takeover.end_membership(rows, self._number, self.id, self._started, STOPPED)

    async def _close(self) -> None:
        """Close what it talks to the queue by."""
        await runtime.in_thread(self._renewal.close)

    async def probes(self) -> list[tuple[str, str]]:
        due = {"now": self.now(), "suspicion": SUSPICION_SECONDS}
        if not await self._shared.rows("any_to_probe", **due):
            return []
        return await self._shared.change(lanes.take_probes)

    async def probed(self, lane: str, ok: bool) -> None:
        await self._shared.change(lambda tx: lanes.note_probe(self._shared.lane_rows(tx), lane, ok))

    async def consume(self, lease: Lease, name: str, row: StepRow) -> Consumed:
        from penstock.adapters.sql import signals  # most jobs wait for none

        number, member = self._number, self.id
        return await self._shared.change(
            lambda tx: signals.consume(tx, number, member, lease, name, row)
        )

    async def drop_steps(self, lease: Lease, keys: Sequence[str]) -> bool:
        fence = {"seq": lease.seq, "id": lease.id, "token": lease.token}
        fence |= {"member": self._number, "member_id": self.id}

        async def drop(tx: Sql) -> bool:
            if await tx.one("lock_held", **fence) is None:
                return False
            await tx.execute("drop_steps", seq=lease.seq, keys=list(keys))
            await tx.execute("untake_signals", seq=lease.seq, keys=list(keys))
            return True

        return await self._shared.change(drop)

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        return self._renewal.renew(status, holds)

    async def cancelled(self) -> list[int]:
        rows = await self._shared.rows("cancelled_here", number=self._number, id=self.id)
        return [seq for (seq,) in rows]

    async def upkeep(self) -> None:
        await self._upkeep.run()
