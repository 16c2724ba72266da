"""Amounts of jobs: stored on their rows, and read where their lanes count them.

Other jobs have none, and neither a claim nor an enqueue of them comes here.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.sql.dialect import Sql
from penstock.lanes.amounts import Booking, refusal
from penstock.lanes.state import LaneState
from penstock.model.amounts import NOTHING, Amounts
from penstock.ports.queue import Lease, NewJob

_STORE = "UPDATE penstock.jobs SET amount = :amount WHERE id = :id"
_ADOPT = "UPDATE penstock.jobs SET amount = :amount WHERE seq = :seq"
_READ = "SELECT seq, amount FROM penstock.jobs WHERE seq = ANY (:seqs) AND amount IS NOT NULL"


async def store(tx: Sql, items: Sequence[NewJob]) -> None:
    """Of jobs that were stored just now."""
    rows = [{"id": item.id, "amount": item.amount} for item in items if item.amount is not None]
    await tx.execute_many(_STORE, rows)


async def adopt(tx: Sql, found: Sequence[tuple[int, str]]) -> None:
    """Of jobs (seq, amount) that were enqueued where their kind was unknown."""
    await tx.execute_many(_ADOPT, [{"seq": seq, "amount": amount} for seq, amount in found])


async def bookings(tx: Sql, lanes: list[LaneState], leases: Sequence[Lease]) -> list[Booking]:
    """What each of these jobs is to reserve in `lanes`."""
    rows = await tx.fetch(_READ, seqs=[lease.seq for lease in leases])
    amounts = {seq: Amounts.read(text) or NOTHING for seq, text in rows}
    return [
        Booking(lease.seq, lease.token, amount, refusal(lanes, amount))
        for lease in leases
        for amount in [amounts.get(lease.seq, NOTHING)]
    ]
