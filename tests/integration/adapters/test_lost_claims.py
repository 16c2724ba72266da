"""A claim whose answer was lost: what its holder never heard of is let go."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.queue import Topic
from tests.conformance.lane_support import LANE, claim_one_in_lane, open_lanes
from tests.conformance.rewinding import let_another_hold
from tests.conformance.support import (
    Ledger,
    add_one,
    claim_one,
    exchange,
    get,
    handed_back,
    one,
)
from tests.support.waiting import PATIENCE


@pytest.fixture(params=["postgres", "redis", "valkey"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger(request.param, tmp_path)
    yield ledger
    await ledger.close()


async def test_cancelled_job_that_its_holder_never_heard_of_is_let_go(ledger: Ledger) -> None:
    queue = await ledger.open()
    told = await ledger.join(queue)
    holder: Any = await ledger.join(queue)
    job = await add_one(queue)
    await claim_one(told)
    let_another_hold(ledger, job.id, holder)
    await queue.cancel(one(job))
    assert await queue.work_left(None), "it is being stopped"
    finished = queue.listen(Topic.FINISHED)
    _memory(ledger, holder)._doubt = True  # as after a trip that was not answered
    await exchange(holder)

    assert not await queue.work_left(None)
    assert await finished.wait(PATIENCE), "who waits for the end of all is told"
    assert (await get(queue, job.id)).state == "cancelled"


async def test_slot_of_a_job_that_is_claimed_again_and_not_heard_of_is_free(ledger: Ledger) -> None:
    """The holder knows the job, by its claim before: that one has no slot."""
    queue = await open_lanes(ledger, **{LANE: {"max_parallel": 1}})
    holder: Any = await ledger.join(queue)
    other = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(holder)
    memory = _memory(ledger, holder)
    known = memory._leases.copy()
    await exchange(holder, handed_back(lease))
    assert (await claim_one_in_lane(holder)).id == job.id
    memory._leases, memory._doubt = known, True  # as if neither had been answered

    await exchange(holder)
    assert (await claim_one_in_lane(other)).id == job.id


def _memory(ledger: Ledger, member: Any) -> Any:
    """Who knows what a member holds, as far as it was told."""
    return member._orphans if ledger.backend_name == "postgres" else member
