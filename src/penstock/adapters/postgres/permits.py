"""Grants permits inside jobs: one exchange for all pending requests."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.lanes import family
from penstock.lanes import permit
from penstock.lanes.state import LaneState
from penstock.ports.lanes import Busy, Permit, PermitRequest


async def take(
    tx: Transaction, holder: int, member: str, requests: Sequence[PermitRequest]
) -> list[Permit | Busy]:
    """A permit or the reason why not, for each request in order. The lanes are known."""
    here = "SELECT 1 FROM penstock.processes WHERE number = $1 AND id = $2 FOR KEY SHARE"
    if await tx.fetchval(here, holder, member) is None:
        return permit.to_nobody(requests, tx.now)
    states = await store.lock(tx, [request.lane for request in requests])
    slots_held = await store.held_by(tx, holder, [request.job for request in requests])
    answers: list[Permit | Busy] = []
    changed: dict[str, LaneState] = {}
    slots: list[tuple[str, int]] = []
    for request in requests:
        lanes = family(states, request.lane)
        held = slots_held.get(request.job, set())
        answer = permit.ask(lanes, request, holder, held, tx.now)
        answers.append(answer)
        if isinstance(answer, Permit):
            slots += [(name, request.ref) for name in permit.slots(lanes, request, held)]
        if isinstance(answer, Permit) or request.question:
            changed.update({lane.name: lane for lane in lanes})
    await store.take_slots(tx, holder, slots)
    await store.save(tx, changed.values())
    return answers
