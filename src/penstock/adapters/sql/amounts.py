"""Amounts of jobs: stored on their rows, and read where their lanes count them.

Other jobs have none, and neither a claim nor an enqueue of them comes here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.adapters.sql.dialect import Sql
from penstock.lanes.amounts import Booking, booking, settle, starts, tolerance, used_by
from penstock.lanes.state import LaneState
from penstock.lanes.waiting import Picked, with_permit
from penstock.model.amounts import NOTHING, Amounts
from penstock.ports.lanes import Returned
from penstock.ports.queue import Lease, NewJob, Settlement

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


async def read(tx: Sql, picked: Sequence[Picked]) -> dict[int, str]:
    """What is on these jobs' rows."""
    return dict(await tx.fetch(_READ, seqs=[one.lease.seq for one in picked]))


def claimed(
    lanes: list[LaneState],
    picked: list[Picked],
    amounts: Mapping[int, str],
    now: float,
    slack: float,
) -> tuple[list[Lease], Amounts | None]:
    """As `waiting.starts`, in lanes that count amounts, with what was read of them; and what the
    first job reserves that could not start."""
    bookings = []
    for one in picked:
        lease, amount = one.lease, Amounts.read(amounts.get(one.lease.seq))
        if one.resumes:
            bookings.append(Booking(lease.seq, lease.token, amount or NOTHING))
        else:
            bookings.append(booking(lanes, lease.seq, lease.token, amount, lease.kind))
    granted = starts(lanes, [one.resumes for one in picked], bookings, now, slack)
    leases, late = [], tolerance(lanes)
    for one, booked, at in zip(picked, bookings, granted, strict=False):
        lease = with_permit(one, at, lanes, slack)
        if not one.resumes:
            lease = lease._replace(
                void_at=at + slack + late,
                reserved=booked.amount,
                refused=booked.refusal,
                usual=booked.kind is not None,
            )
        leases.append(lease)
    return leases, bookings[len(leases)].amount if len(leases) < len(bookings) else None


def pay(lanes: list[LaneState], end: Settlement | Returned, now: float) -> bool:
    """Settle in a lane, and its parent, what was reserved with a job's start, or a permit. Whether
    anything was given back."""
    match end:
        case Settlement(lease=lease):
            return settle(lanes, lease.seq, lease.token, used_by(end), now)
        case Returned(started=True):
            return settle(lanes, end.job, end.token, end.used, now)
        case Returned():
            return settle(lanes, end.permit.ref, 0, end.used, now)
