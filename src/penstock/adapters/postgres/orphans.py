"""Finds leases and permits that the queue attributes to this process, but the process does not
know.

When a connection breaks at the wrong moment, the server may have leased jobs that this process
never heard of; and a replica that takes over may not know that others were settled. They would
wait for the end of the membership; so the first trip over a new connection, and the one after a
trip that failed, looks for them first and gives them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from penstock.adapters.postgres.database import Pool, Transaction
from penstock.adapters.postgres.lanes import free_slots, lock_held
from penstock.adapters.postgres.settle import IS_MEMBER
from penstock.adapters.sql import changes
from penstock.adapters.sql.settlement_rows import CANCELLED, LogEntry
from penstock.adapters.sql.stop import cancel_requeued
from penstock.model.job import HISTORY_LIMIT
from penstock.ports.lanes import Busy, Permit, Returned
from penstock.ports.queue import Lease, Ref, Settlement, Topic


class Orphans:
    """Knows what this process holds, as far as it was told."""

    def __init__(self, number: int, member: str, made: int) -> None:
        """`made`: connections that were made before it held anything."""
        self._number, self._member = number, member
        self._leases: set[Ref] = set()
        self._permits: set[int] = set()
        self._doubt = False
        self._made = made
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def watched(self, trips: Pool) -> AsyncIterator[None]:
        """A trip, one at a time: what another has just been given is not known here yet. If it
        fails nobody knows what came of it, and the next one finds out."""
        async with self._lock:
            if self._doubt or self._made != trips.made:
                await trips.write(self._give_back)
                self._doubt, self._made = False, trips.made
            try:
                yield
            except BaseException:
                self._doubt = True
                raise

    def leased(self, leases: Iterable[Lease]) -> None:
        self._leases.update(lease.ref for lease in leases)

    def settled(self, settlements: Iterable[Settlement], returned: Iterable[Returned]) -> None:
        self._leases.difference_update(s.lease.ref for s in settlements)
        self._permits.difference_update(one.permit.ref for one in returned)

    def permitted(self, answers: Sequence[Permit | Busy]) -> None:
        self._permits.update(answer.ref for answer in answers if isinstance(answer, Permit))

    async def _give_back(self, tx: Transaction) -> None:
        if not await tx.fetchval(IS_MEMBER, self._number, self._member):
            return
        await lock_held(tx, self._number)
        held = await tx.fetch(
            "SELECT seq, id, token FROM penstock.jobs WHERE holder = $1 AND state = 'running'"
            " ORDER BY seq FOR UPDATE",
            self._number,
        )
        lost = [tuple(row) for row in held if tuple(row) not in self._leases]
        if lost:
            seqs, ids, tokens = zip(*lost, strict=True)
            nothing = [None] * len(lost)
            columns = (seqs, ids, tokens, nothing, nothing, nothing)
            await tx.fetch("handed_back", *columns, HISTORY_LIMIT, self._number)
            await self._cancel_stopped(tx, seqs)
            tx.wake(Topic.READY)
        lost += await self._end_cancelled(tx)
        slots = await tx.fetch(
            "SELECT DISTINCT ref FROM penstock.slots WHERE holder = $1", self._number
        )
        # Of one that was claimed again the claim before is known, and the slot is that of the last.
        known = {seq for seq, *_ in self._leases} - {seq for seq, *_ in lost} | self._permits
        if unknown := [ref for (ref,) in slots if ref not in known]:
            await free_slots(tx, self._number, unknown)

    async def _end_cancelled(self, tx: Transaction) -> list[tuple[Any, ...]]:
        """Those that were cancelled meanwhile have no run that could end."""
        held = await tx.fetch(
            "SELECT seq, id, token FROM penstock.jobs WHERE holder = $1 AND state = 'cancelled'"
            " ORDER BY seq FOR UPDATE",
            self._number,
        )
        lost = [tuple(row) for row in held if tuple(row) not in self._leases]
        if lost:
            await tx.fetch("cancel_seen", *zip(*lost, strict=True), self._number)
            tx.wake(Topic.FINISHED)
        return lost

    async def _cancel_stopped(self, tx: Transaction, seqs: Sequence[int]) -> None:
        cancelled = sorted(await cancel_requeued(tx, seqs))
        rows = await tx.fetch(
            "SELECT tenant, log, id FROM penstock.jobs WHERE seq = ANY ($1) ORDER BY seq", cancelled
        )
        entries = [LogEntry(tenant, log, CANCELLED, job_id, {}) for tenant, log, job_id in rows]
        await changes.append(tx, entries)
