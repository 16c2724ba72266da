"""A claim whose answer was lost, of a job that is cancelled meanwhile: nobody stops it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.queue import Topic
from tests.conformance.rewinding import let_another_hold
from tests.conformance.support import Ledger, add_one, claim_one, exchange, get, one
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
    # As after a trip that was not answered.
    (holder._orphans if ledger.backend_name == "postgres" else holder)._doubt = True
    await exchange(holder)

    assert not await queue.work_left(None)
    assert await finished.wait(PATIENCE), "who waits for the end of all is told"
    assert (await get(queue, job.id)).state == "cancelled"
