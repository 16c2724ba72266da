"""The backlog as a forecast reads it: the same on every queue."""

import time

from penstock.model.amounts import NOTHING, Amounts
from penstock.model.job import Priority
from penstock.ports.backlog import Backlog, WaitingJobs
from penstock.ports.queue import NO_LANE, JobQueue, Lease, Member, Settlement
from tests.conformance.lane_support import LANE, claim_lanes, end, open_lanes, up
from tests.conformance.support import KIND, Ledger, add, claim, retry, settle

Counts = dict[tuple[str, str, str, int, bool], int]


def counts(backlog: Backlog) -> Counts:
    """Waiting jobs by kind, tenant, lane, band, and whether they are due."""
    found: Counts = {}
    for one in backlog.waiting:
        found[one[:5]] = found.get(one[:5], 0) + one.size
    return found


def whole(jobs: list[WaitingJobs]) -> Amounts:
    return Amounts(*(sum(parts) for parts in zip(*(one.amount for one in jobs), strict=True)))


async def test_jobs_that_are_alike_are_told_as_one_group(queue: JobQueue) -> None:
    await add(queue, 30)
    await add(queue, 5, tenant="acme", priority=Priority.LOW)
    await add(queue, 7, kind="other")
    backlog = await queue.backlog()
    assert counts(backlog) == {
        (KIND, "default", NO_LANE, 50, True): 30,
        (KIND, "acme", NO_LANE, 90, True): 5,
        ("other", "default", NO_LANE, 50, True): 7,
    }
    assert len(backlog.waiting) == 3
    first = next(one for one in backlog.waiting if one.size == 30)
    assert round(first.last - first.first) == 29  # they stand one after another
    assert first.amount == NOTHING
    assert (backlog.running, backlog.past) == ([], [])


async def test_jobs_for_later_are_told_by_when_they_are_due(queue: JobQueue) -> None:
    now = queue.now()
    await add(queue, 3, run_at=now + 100)
    await add(queue, 2, run_at=now + 100_000)
    backlog = await queue.backlog()
    assert counts(backlog) == {(KIND, "default", NO_LANE, 50, False): 5}
    near, far = sorted(backlog.waiting, key=lambda one: one.first)
    assert (near.size, far.size) == (3, 2)
    assert [round(one.first - now) for one in (near, far)] == [100, 100_000]


async def test_amounts_are_folded_by_size_and_their_sum_is_exact(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, **{LANE: {"tokens_per_interval": 9999, "interval_seconds": 9}})
    sizes = [*(range(1000, 1100, 7)), *(range(7000, 7100, 9)), 3]
    for size in sizes:
        amount = Amounts.of(tokens=size, cost=size / 1000).text
        await add(queue, 1, lane=LANE, amount=amount)
    backlog = await queue.backlog()
    assert counts(backlog) == {(KIND, "default", LANE, 50, True): len(sizes)}
    assert len(backlog.waiting) == 3
    assert whole(list(backlog.waiting)) == Amounts(
        sum(sizes), sum(sizes), sum(sizes), 1000 * sum(sizes)
    )
    (lane,) = backlog.lanes
    assert lane["name"] == LANE
    assert '"tokens": 9999' in lane["amounts"]


async def test_running_jobs_are_told_with_who_holds_them(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, **{LANE: {"max_parallel": 2}})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    await claim_lanes(member, 3)
    backlog = await queue.backlog()
    assert counts(backlog) == {(KIND, "default", LANE, 50, True): 1}
    assert [(one.kind, one.lane, one.process) for one in backlog.running] == [
        (KIND, LANE, member.id)
    ] * 2
    assert all(abs(one.started_at - queue.now()) < 60 for one in backlog.running)
    (lane,) = backlog.lanes
    assert lane["in_flight"] == 2


async def test_past_runs_are_told_with_their_seconds_and_attempts(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, **{LANE: {}})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    await end(member, *map(up, await claim_lanes(member, 2)))
    await add(queue, 1)
    await settle(member, *(retry(lease, time.time() - 1) for lease in await claim(member)))
    await settle(member, *map(_in_three_seconds, await claim(member)))
    past = sorted((await queue.backlog()).past)
    assert [(one.kind, one.lane, round(one.seconds), one.attempts) for one in past] == [
        (KIND, NO_LANE, 3, 2),
        (KIND, LANE, 1, 1),
        (KIND, LANE, 1, 1),
    ]


def _in_three_seconds(lease: Lease) -> Settlement:
    return up(lease)._replace(started_at=time.time() - 3, report=None)


async def test_nothing_waits_in_an_empty_queue(queue: JobQueue, member: Member) -> None:
    backlog = await queue.backlog()
    assert (backlog.waiting, backlog.running, backlog.past) == ([], [], [])
    assert abs(backlog.at - queue.now()) < 60
