"""Grants permits inside jobs: one exchange for all pending requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.lane_settle import learn_and_save, standing_leases
from penstock.adapters.sqlite.transaction import Transaction
from penstock.lanes import permit
from penstock.lanes.state import LaneState
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned


def take(
    tx: Transaction,
    holder: int | None,
    requests: Sequence[PermitRequest],
    lane_config: Callable[[str], LaneConfig],
) -> list[Permit | Busy]:
    """A permit or the reason why not, for each request in order; none for who is no member."""
    store.configure(tx, dict.fromkeys(request.lane for request in requests), lane_config)
    if holder is None:
        return permit.to_nobody(requests, tx.now)
    answers: list[Permit | Busy] = []
    for request in requests:
        lanes = store.with_parent(tx, request.lane)
        store.end_lost_trials(tx, lanes)
        answers.append(_take(tx, holder, request, lanes))
    return answers


def _take(
    tx: Transaction, holder: int, request: PermitRequest, lanes: list[LaneState]
) -> Permit | Busy:
    held = store.held_by(tx, lanes, holder, request.job)
    answer = permit.ask(lanes, request, holder, held, tx.now)
    if isinstance(answer, Permit):
        store.take_slots(tx, permit.slots(lanes, request, held), holder, [request.ref])
    if isinstance(answer, Permit) or request.question:
        for lane in lanes:
            store.save(tx, lane)
    return answer


def give_back(tx: Transaction, holder: int, returned: Sequence[Returned]) -> None:
    """End permits, and let their lanes learn how the requests of jobs held here went."""
    refs = [(one.job, one.id, one.token) for one in returned if one.job > 0]
    known = standing_leases(tx, holder, refs, ended=True) if refs else set()
    returned = permit.still_ours(returned, known)
    for one in returned:
        learn_and_save(tx, one.permit.lane, holder, one.permit.ref, one.job, one.token, one.report)
    store.free_slots(tx, holder, [one.permit.ref for one in returned])
