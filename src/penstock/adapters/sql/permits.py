"""Grants permits inside jobs: one exchange for all pending requests."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.sql.lanes import LaneRows, family
from penstock.lanes import permit
from penstock.lanes.amounts import DAY_WHY, WINDOW_WHY
from penstock.lanes.state import LaneState
from penstock.ports.lanes import Busy, Permit, PermitRequest


async def take(
    rows: LaneRows, holder: int, requests: Sequence[PermitRequest]
) -> list[Permit | Busy]:
    """A permit or the reason why not, for each request in order. The lanes are known."""
    states = await rows.lock([request.lane for request in requests])
    slots_held: dict[int, set[str]] = {}
    jobs = [request.job for request in requests if request.job]
    for job, lane in await rows.tx.fetch("slots_of_jobs", holder=holder, jobs=jobs):
        slots_held.setdefault(job, set()).add(lane)
    answers: list[Permit | Busy] = []
    too_soon: dict[tuple[str, bool], Busy] = {}
    changed: dict[str, LaneState] = {}
    slots: list[tuple[str, int]] = []
    for request in requests:
        lanes = family(states, request.lane)
        held = slots_held.get(request.job, set())
        line = (request.lane, request.question)
        # Who asks for little does not overtake who asked for much before.
        answer = too_soon.get(line) or permit.ask(lanes, request, holder, held, rows.tx.now)
        answers.append(answer)
        if isinstance(answer, Busy) and answer.why in (WINDOW_WHY, DAY_WHY):
            too_soon[line] = answer
            changed.update({one.name: one for one in lanes if one.use and one.use.changed})
        if isinstance(answer, Permit):
            slots += [(name, request.ref) for name in permit.slots(lanes, request, held)]
        if isinstance(answer, Permit) or request.question:
            changed.update({lane.name: lane for lane in lanes})
    await rows.take_slots(holder, slots)
    await rows.save(changed.values())
    return answers
