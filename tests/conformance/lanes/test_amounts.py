"""Tokens and money that a lane counts: reserved with a start, settled with its end, by all stores
alike."""

import asyncio

import pytest

from penstock.errors import KeyConflict
from penstock.model.amounts import NOTHING, Amounts
from penstock.model.job import JobState
from penstock.ports.lanes import Busy, LaneCommand, Permit, Returned
from penstock.ports.queue import (
    UNKNOWN_LANE,
    JobFilter,
    JobQueue,
    KindDefaults,
    Lease,
    Member,
    Want,
)
from tests.conformance.lane_support import (
    LANE,
    a_day_ahead,
    ask,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    end,
    give_back,
    info,
    open_lanes,
    permitted,
    up,
)
from tests.conformance.support import (
    KIND,
    Ledger,
    add,
    add_keyed,
    add_one,
    completed,
    get,
    handed_back,
    until,
)

WINDOW = 600.0
"""Seconds: nothing leaves it during a test."""
COUNTS = {"tokens_per_interval": 1000, "interval_seconds": WINDOW}


def tokens(count: int) -> Amounts:
    return Amounts.of(count)


async def taken(member: Member, count: int, lane: str = LANE) -> Permit | Busy:
    """The answer to who asks for a permit of so many tokens."""
    (answer,) = await member.permits([ask(lane)._replace(amount=tokens(count))])
    return answer


async def fits(member: Member, count: int, lane: str = LANE) -> bool:
    """Whether there is room; what was reserved to find out is given back."""
    answer = await taken(member, count, lane)
    if isinstance(answer, Permit):
        await returned(member, answer, NOTHING)
    return isinstance(answer, Permit)


async def returned(member: Member, permit: Permit, used: Amounts | None) -> None:
    await member.exchange([], [], None, [Returned(permit, None, 0, 0, used=used)])


async def started_with(member: Member, lease: Lease, used: Amounts) -> None:
    """Say what a job has used of what it was started with."""
    nothing = Permit(lease.lane, ask().ref, lease.start_at)
    told = Returned(nothing, None, lease.seq, lease.token, lease.id, used=used, started=True)
    await member.exchange([], [], None, [told])


async def add_jobs(queue: JobQueue, *counts: int) -> list[str]:
    texts = [tokens(count).text for count in counts]
    return [(await add_one(queue, lane=LANE, amount=text)).id for text in texts]


async def test_permits_reserve_their_tokens_and_are_settled_with_their_use(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member, other = await ledger.join(queue), await ledger.join(queue)
    first = await taken(member, 600)
    assert isinstance(first, Permit)
    assert not await fits(other, 401)
    second = await taken(other, 400)
    assert isinstance(second, Permit)
    busy = await taken(member, 1)
    assert isinstance(busy, Busy)
    assert (busy.lane, busy.why) == (LANE, "its tokens")
    assert busy.until is not None
    assert WINDOW < busy.until - first.start_at < 1.05 * WINDOW

    await returned(member, first, tokens(250))
    assert not await fits(other, 351)
    assert await fits(other, 350)
    await returned(member, first, NOTHING)  # that was settled
    assert not await fits(other, 351)
    await returned(other, second, None)  # nothing is known: what was reserved stands
    assert not await fits(other, 351)


async def test_bucket_is_refilled_all_the_time(ledger: Ledger) -> None:
    rate = {"tokens_per_interval": 100_000, "interval_seconds": 100.0, "window": "bucket"}
    queue = await open_lanes(ledger, api=rate)
    member = await ledger.join(queue)
    first = await taken(member, 98_000)
    assert isinstance(first, Permit)
    busy = await taken(member, 10_000)
    assert isinstance(busy, Busy)
    assert busy.until is not None
    assert busy.until - first.start_at == pytest.approx(11.0, abs=2.0)

    async def refilled() -> bool:
        return isinstance(await taken(member, 500), Permit)

    await until(refilled, "the bucket to be refilled")


async def test_input_and_output_are_counted_apart(ledger: Ledger) -> None:
    keys = {"input_tokens_per_interval": 1000, "output_tokens_per_interval": 100}
    queue = await open_lanes(ledger, api={**keys, "interval_seconds": WINDOW})
    member = await ledger.join(queue)
    answers = await member.permits(
        [
            ask()._replace(amount=Amounts.of(input_tokens=100, output_tokens=60)),
            ask()._replace(amount=Amounts.of(input_tokens=100, output_tokens=60)),
        ]
    )
    assert [type(answer) for answer in answers] == [Permit, Busy]


async def test_day_has_its_tokens_and_its_money(ledger: Ledger) -> None:
    await a_day_ahead()
    queue = await open_lanes(ledger, api={"cost_per_day": 2.0, "tokens_per_day": 1000})
    member = await ledger.join(queue)
    paid = ask()._replace(amount=Amounts.of(10, cost=1.25))
    (first,) = await member.permits([paid])
    assert isinstance(first, Permit)
    (busy,) = await member.permits([paid._replace(ref=ask().ref)])
    assert isinstance(busy, Busy)
    assert busy.why == "its daily amount"
    await returned(member, first, Amounts.of(10, cost=0.5))
    (second,) = await member.permits([paid._replace(ref=ask().ref)])
    assert isinstance(second, Permit)
    assert not await fits(member, 981)


async def test_parent_counts_what_all_its_children_use(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, one={"parent": "all"}, other={"parent": "all"}, all=COUNTS)
    member = await ledger.join(queue)
    first = await taken(member, 700, "one")
    assert isinstance(first, Permit)
    assert not await fits(member, 301, "other")
    await returned(member, first, tokens(100))
    assert await fits(member, 900, "other")
    assert not await fits(member, 901, "other")


async def test_parent_counts_the_starts_of_jobs(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"parent": "all"}, all=COUNTS)
    member = await ledger.join(queue)
    await add_jobs(queue, 700, 700)
    (lease,) = await claim_lanes(member)
    await started_with(member, lease, tokens(200))
    await end(member, up(lease))
    assert await fits(member, 800, "all")
    assert not await fits(member, 801, "all")


async def test_jobs_start_in_order_as_there_is_room(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    ids = await add_jobs(queue, 500, 300, 600, 10)
    leases = await claim_lanes(member)
    assert [lease.id for lease in leases] == ids[:2]
    assert [lease.reserved for lease in leases] == [tokens(500), tokens(300)]
    assert await claim_lanes(member) == [], "the small one does not overtake the large one"

    await started_with(member, leases[0], tokens(100))
    await end(member, up(leases[0]))

    # The line was put off until there is room by itself: what was given back is used at once.
    assert [lease.id for lease in await claim_lanes(member)] == [ids[2]]
    assert not await fits(member, 1), "the last one could not start either"


async def test_who_says_nothing_reserves_what_is_usual_of_its_kind(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={**COUNTS, "max_parallel": 10})
    member = await ledger.join(queue)
    (told,) = await member.permits([ask()._replace(kind=KIND)])
    assert isinstance(told, Permit)
    await returned(member, told, Amounts.of(input_tokens=200, output_tokens=50))
    assert (await info(queue)).usual_tokens == {KIND: 250}

    # Also jobs; another process, another kind, and who says its amount.
    await add_one(queue, lane=LANE)
    await add_one(queue, lane=LANE, amount=tokens(20).text)
    other = await ledger.join(queue)
    leases = await claim_lanes(other)
    assert [lease.reserved for lease in leases] == [(250, 200, 50, 0), tokens(20)]
    assert [lease.usual for lease in leases] == [True, False]
    assert not await fits(member, 481)
    await started_with(other, leases[0], tokens(300))
    await started_with(other, leases[1], tokens(400))
    assert (await info(queue)).usual_tokens == {KIND: 300}
    (stranger,) = await member.permits([ask()._replace(kind="other")])
    assert isinstance(stranger, Permit)
    assert not await fits(member, 51)


async def test_large_request_is_overtaken_only_for_a_while(ledger: Ledger) -> None:
    rate = {"tokens_per_interval": 1000, "interval_seconds": 4.0, "max_parallel": 10}
    queue = await open_lanes(ledger, api=rate)
    member, other = await ledger.join(queue), await ledger.join(queue)

    async def had(asker: Member, count: int) -> bool:
        answer = await taken(asker, count)
        if isinstance(answer, Permit):
            await returned(asker, answer, None)
            return True
        assert answer.why == "its tokens"
        return False

    assert await had(member, 500)
    assert not await had(other, 900)
    assert await had(member, 1), "it may overtake"

    async def large_one_is_next() -> bool:
        while await had(member, 20):
            pass
        return await had(other, 900)

    await until(large_one_is_next, "the large request")


async def test_start_that_was_not_used_gives_back_its_amount(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    await add_jobs(queue, 900)
    lease = await claim_one_in_lane(member)
    assert not await fits(member, 101)
    await end(member, handed_back(lease))
    again = await claim_one_in_lane(member)
    assert again.token > lease.token
    await end(member, completed(again))
    assert not await fits(member, 101), "what it has used is not known"


async def test_dead_process_leaves_what_it_has_reserved(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member, other = await ledger.join(queue), await ledger.join(queue)
    assert isinstance(await taken(member, 900), Permit)
    await ledger.leave(member)
    assert (await info(queue)).in_flight == 0
    assert not await fits(other, 101)
    assert await fits(other, 100)


async def test_what_can_never_start_is_refused_with_the_reason(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    busy = await taken(member, 1001)
    assert isinstance(busy, Busy)
    assert busy.refused
    assert busy.why == "1001 tokens in a window are more than lane api has, 1000"

    ids = await add_jobs(queue, 1001, 5)
    leases = await claim_lanes(member)
    assert [lease.id for lease in leases] == ids
    assert [lease.refused for lease in leases] == [busy.why, None]
    await end(member, *map(completed, leases))
    assert (await info(queue)).in_flight == 0
    assert await fits(member, 995)


async def test_what_is_too_large_is_let_through_alone_where_that_is_configured(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={**COUNTS, "oversized": "alone"})
    member = await ledger.join(queue)
    small = await taken(member, 1)
    assert isinstance(small, Permit)
    assert not await fits(member, 5000)
    await returned(member, small, NOTHING)
    assert isinstance(await taken(member, 5000), Permit)
    assert not await fits(member, 1)


async def test_small_requests_of_a_trip_do_not_overtake_a_large_one(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    assert isinstance(await taken(member, 800), Permit)
    asked = [ask()._replace(amount=tokens(count)) for count in (100, 500, 10)]
    answers = await member.permits(asked)
    assert [type(answer) for answer in answers] == [Permit, Busy, Busy]


async def test_process_that_knows_the_kind_computes_the_amount(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    for payload in ('{"words": 600}', '{"words": 700}', "{}"):
        await add_one(queue, payloads=[payload], lane=UNKNOWN_LANE)

    def amount_of(payload: str) -> str:
        if payload == "{}":
            raise ValueError("it has no words")
        return tokens(int(payload[len('{"words": ') : -1])).text

    kinds = {KIND: KindDefaults(30.0, 3, lambda payload: LANE, amount_of)}
    (lease,) = (await member.exchange([], [], Want(0, kinds, True, 10))).leases
    assert lease.reserved == tokens(600)

    async def broken() -> bool:
        dead = await queue.find(JobFilter(states=[JobState.FAILED]), 10)
        return [job.payload for job in dead] == [{}]

    await until(broken, "the job without an amount to fail")


async def test_batch_keeps_the_amount_of_each(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={**COUNTS, "max_parallel": 10})
    member = await ledger.join(queue)
    ids = [job.id for job in await add(queue, 3, lane=LANE, amount=tokens(333).text)]
    await add(queue, 1, lane=LANE)
    leases = await claim_lanes(member)
    assert [lease.reserved for lease in leases] == [tokens(333)] * 3 + [NOTHING]
    assert [lease.id for lease in leases[:3]] == ids
    assert (await get(queue, ids[0])).state is JobState.RUNNING


async def test_jobs_with_amounts_keep_their_keys_and_their_time(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    amount, soon = tokens(400).text, queue.now() + 0.3
    job = await add_keyed(queue, "once", lane=LANE, amount=amount, run_at=soon, log="letters")
    assert (await add_keyed(queue, "once", lane=LANE, amount=amount)).id == job.id
    with pytest.raises(KeyConflict):
        await add_keyed(queue, "once", '{"n": 2}', lane=LANE, amount=amount)
    (lease,) = await claimed_soon(member)
    assert (lease.id, lease.reserved) == (job.id, tokens(400))
    assert lease.start_at >= soon
    assert [change.what for change in await queue.changes("default", "letters", 0, 9)] == ["queued"]


async def test_reset_and_other_limits_hold_at_once(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    assert isinstance(await taken(member, 1000), Permit)
    assert await queue.control(LANE, LaneCommand.RESET)
    assert isinstance(await taken(member, 1000), Permit)

    wider = await open_lanes(ledger, api={**COUNTS, "tokens_per_interval": 1500})
    other = await ledger.join(wider)
    assert await fits(other, 500)
    assert not await fits(other, 501)
    uncounted = await ledger.join(await open_lanes(ledger, api={}))
    assert await fits(uncounted, 10**6)


async def test_lane_without_amounts_takes_no_notice_of_them(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    member = await ledger.join(queue)
    permits = [await taken(member, 10**6) for _ in range(2)]
    await add_jobs(queue, 10**6)
    lease = await claim_one_in_lane(member)
    assert lease.reserved is None
    assert await permitted(member, "other") is not None
    await give_back(member, [one for one in permits if isinstance(one, Permit)])
    await end(member, up(lease))
    assert (await info(queue)).in_flight == 0


async def test_processes_together_never_reserve_more_than_there_is(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=COUNTS)
    members = [await ledger.join(queue) for _ in range(4)]

    async def all_it_can(member: Member) -> int:
        had = 0
        while isinstance(answer := await taken(member, 70), Permit):
            had += 70
            await returned(member, answer, None)
        return had

    assert sum(await asyncio.gather(*map(all_it_can, members))) == 980


@pytest.mark.parametrize("used", [None, NOTHING])
async def test_permit_that_is_returned_by_another_settles_what_it_took(
    ledger: Ledger, used: Amounts | None
) -> None:
    """The money was spent, whoever says so."""
    queue = await open_lanes(ledger, api=COUNTS)
    member = await ledger.join(queue)
    permit = await taken(member, 900)
    assert isinstance(permit, Permit)
    stranger = await ledger.join(queue)
    await stranger.exchange([], [], None, [Returned(permit, None, 77, 1, "lost", used=used)])
    assert await fits(stranger, 101) is (used is NOTHING)
