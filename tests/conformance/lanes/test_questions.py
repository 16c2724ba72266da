"""Questions, for whose answer somebody waits, share a lane with jobs."""

import time

from penstock.lanes.permit import WAITING_SECONDS
from penstock.ports.lanes import Busy, News, Permit, Report, Returned
from penstock.ports.queue import Topic
from tests.conformance.lane_support import (
    CALM,
    LANE,
    claim_lanes,
    end,
    give_back,
    info,
    open_lanes,
    permit,
    permitted,
    up,
)
from tests.conformance.support import Ledger, add, until

LONG = 60.0


async def test_jobs_and_questions_leave_each_other_a_slot(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    first = await permitted(member, question=True)
    assert len(await claim_lanes(member)) == 2
    await give_back(member, [first])
    assert await claim_lanes(member) == []
    again = await permitted(member, question=True)
    assert isinstance(await permit(member, question=True), Busy)
    assert (await info(queue)).in_flight == 3
    await give_back(member, [again])


async def test_questions_do_not_take_the_last_slot_of_several(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    member, other = await ledger.join(queue), await ledger.join(queue)
    answers = [await permit(one, question=True) for one in (member, other, member, other)]
    assert [isinstance(one, Permit) for one in answers] == [True, True, False, False]
    await add(queue, lane=LANE)
    assert len(await claim_lanes(other)) == 1


async def test_the_only_slot_is_free_for_the_question_that_waits(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    await add(queue, 50, lane=LANE)
    taken = await claim_lanes(member)
    while taken:
        (running,) = taken
        before = time.monotonic()
        waits = await permit(member, question=True, patience=LONG)
        assert waits == Busy(LANE, None, "all its slots are taken")
        woken = queue.listen(Topic.READY)
        try:
            # The trip that ends the one job claims no other.
            assert (await end(member, up(running))).leases == []
            assert await woken.wait(LONG), "the question is told that the slot is free"
        finally:
            woken.close()
        taken = await claim_lanes(member)
        late = time.monotonic() - before > WAITING_SECONDS  # on a busy machine: once more
        assert taken == [] or late
    asked = await permitted(member, question=True)
    await give_back(member, [asked])
    assert len(await claim_lanes(member)) == 1


async def test_slots_of_questions_end_with_the_membership(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 2})
    member, other = await ledger.join(queue), await ledger.join(queue)
    await permitted(member, question=True)
    assert isinstance(await permit(other, question=True), Busy)
    await member.leave()
    assert (await info(queue)).in_flight == 0
    await permitted(other, question=True)


async def test_the_question_that_is_the_try_of_a_breaker_knows(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={**CALM, "breaker_first_seconds": 0.01})
    member = await ledger.join(queue)
    for visit in (-1001, -1002):
        asked = await permitted(member, question=True, job=visit)
        assert not asked.trial
        failed = Returned(asked, Report(News.UNAVAILABLE), visit, 0)
        await member.exchange([], [], None, [failed])
    lane = await info(queue)
    assert lane.breaker == "open"

    async def tried() -> Permit | None:
        answer = await permit(member, question=True, job=-1003)
        return answer if isinstance(answer, Permit) else None

    granted = await until(tried, "the try")
    assert granted is not None
    assert granted.trial
