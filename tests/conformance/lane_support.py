"""Words for the conformance tests of lanes. Everything goes through the ports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from penstock.lanes.state import DAY
from penstock.model.ids import new_ref
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import Busy, LaneInfo, News, Permit, PermitRequest, Report, Returned
from penstock.ports.queue import (
    Exchange,
    JobQueue,
    KindDefaults,
    Lease,
    Member,
    Outcome,
    Settlement,
    Want,
)
from tests.conformance.support import (
    KIND,
    Ledger,
    add,
    clock_passes,
    completed,
    error_of,
    get,
    ids_of,
    no_limits,
    until,
)

LANE = "api"
QUICK = 0.05
"""Seconds the first try waits in the lanes of these tests, unless they say otherwise."""
CALM = {"breaker_first_seconds": 60.0, "breaker_cap_seconds": 300.0}
"""A breaker whose first try comes long after the test, or when `ledger.later(60)` says so."""


def config_of(**lanes: dict[str, Any]) -> Callable[[str], LaneConfig]:
    """The limits given; lanes without a rate, and with many slots, else. Breakers are quick."""
    given = {
        name: LaneConfig(
            **{
                "min_interval_seconds": 0.0,
                "max_parallel": 1000,
                "breaker_first_seconds": QUICK,
                "breaker_cap_seconds": 4 * QUICK,
                **values,
            }
        )
        for name, values in lanes.items()
    }
    return lambda name: given.get(name) or no_limits(name)


async def a_day_ahead() -> None:
    """Let a day that is nearly over end: what is used of a daily limit would be forgotten."""
    now = time.time()
    tomorrow = (now // DAY + 1) * DAY
    if tomorrow - now < 30:
        await clock_passes(tomorrow)


async def open_lanes(ledger: Ledger, **lanes: dict[str, Any]) -> JobQueue:
    if any("requests_per_day" in lane for lane in lanes.values()):
        await a_day_ahead()
    return await ledger.open(lane_config=config_of(**lanes))


def want_lanes(lanes: int = 10, *kinds: str, limit: int = 0, crashed: bool = True) -> Want:
    known = {kind: KindDefaults(30.0, 3) for kind in kinds or (KIND,)}
    return Want(limit, known, crashed, lanes)


async def claim_lanes(
    member: Member, lanes: int = 10, *kinds: str, limit: int = 0, crashed: bool = True
) -> list[Lease]:
    wanted = want_lanes(lanes, *kinds, limit=limit, crashed=crashed)
    return (await member.exchange([], [], wanted)).leases


async def claim_one_in_lane(member: Member, *kinds: str) -> Lease:
    (lease,) = await claim_lanes(member, 1, *kinds)
    return lease


async def claimed_soon(member: Member, *kinds: str, lanes: int = 10) -> list[Lease]:
    """What can be claimed as soon as anything can."""

    async def some() -> list[Lease]:
        return await claim_lanes(member, lanes, *kinds)

    return await until(some, "something to claim")


async def info(queue: JobQueue, name: str = LANE) -> LaneInfo:
    (found,) = [lane for lane in await queue.lanes() if lane.name == name]
    return found


async def try_is_due(queue: JobQueue, name: str = LANE) -> None:
    """Wait until the open breaker of a lane allows the next try."""
    lane = await info(queue, name)
    assert lane.breaker == "open"
    assert lane.retry_at is not None
    await clock_passes(lane.retry_at)


async def opened(queue: JobQueue, member: Member) -> list[str]:
    """Two jobs find the lane unavailable; their ids."""
    leases = await claim_lanes(member, 2)
    assert len(leases) == 2
    await end(member, *map(down, leases))
    assert (await info(queue)).breaker == "open"
    return ids_of(leases)


async def attempts(queue: JobQueue, job_id: str) -> int:
    return (await get(queue, job_id)).attempts


def up(lease: Lease) -> Settlement:
    """Completed: the lane's dependency is there."""
    return completed(lease)._replace(report=Report(News.SUCCESS))


def _failed(lease: Lease, report: Report, run_at: float) -> Settlement:
    """What the engine makes of a failure: a retry, or the end if the attempts are spent."""
    now, retries = time.time(), 3 if lease.max_retries is None else lease.max_retries
    spent = lease.attempts > retries
    return Settlement(
        lease,
        Outcome.FAILED if spent else Outcome.RETRY,
        now - 1,
        now,
        error=error_of("Unavailable", "not there"),
        run_at=0.0 if spent else run_at or now,
        report=report,
    )


def down(
    lease: Lease, *, lane: str | None = None, address: str | None = None, run_at: float = 0.0
) -> Settlement:
    """Failed: the dependency could not be reached."""
    return _failed(lease, Report(News.UNAVAILABLE, None, lane, address), run_at)


def limited(lease: Lease, retry_after: float | None, *, lane: str | None = None) -> Settlement:
    return _failed(lease, Report(News.RATE_LIMITED, retry_after, lane), 0.0)


def refused(lease: Lease, *, lane: str | None = None) -> Settlement:
    return _failed(lease, Report(News.REFUSED, None, lane), 0.0)


def own_fault(lease: Lease, run_at: float = 0.0) -> Settlement:
    """Failed in a way that tells nothing of the lane: a 4xx, a bug."""
    return _failed(lease, Report(News.SUCCESS), run_at)._replace(report=None)


async def end(member: Member, *settlements: Settlement) -> Exchange:
    return await member.exchange(settlements, [], None)


async def finish_in_lane(queue: JobQueue, ledger: Ledger) -> None:
    worker = await ledger.join(queue)
    await add(queue, 1, lane=LANE)
    await end(worker, up(await claim_one_in_lane(worker)))
    await ledger.leave(worker)


def ask(
    lane: str = LANE,
    *,
    rate_only: bool = False,
    patience: float = 1.0,
    ref: int | None = None,
    job: int = 0,
    question: bool = False,
    slot_only: bool = False,
) -> PermitRequest:
    ref = new_ref() if ref is None else ref
    return PermitRequest(lane, ref, rate_only, patience, job, slot_only, question=question)


async def permit(member: Member, lane: str = LANE, **options: Any) -> Permit | Busy:
    (answer,) = await member.permits([ask(lane, **options)])
    return answer


async def permitted(member: Member, lane: str = LANE, **options: Any) -> Permit:
    answer = await permit(member, lane, **options)
    assert isinstance(answer, Permit), answer
    return answer


async def give_back(
    member: Member, permits: Sequence[Permit], news: News | None = None, lease: Lease | None = None
) -> None:
    """Return permits; with `news`, as the requests of `lease` went."""
    report = None if news is None else Report(news)
    job, job_id, token = (0, "", 0) if lease is None else lease.ref
    returned = [Returned(one, report, job, token, job_id) for one in permits]
    await member.exchange([], [], None, returned)
