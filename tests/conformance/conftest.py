"""The queues every conformance test runs against."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.ports.queue import JobQueue, Member
from tests.conformance.support import BACKENDS, Ledger


@pytest.fixture(params=sorted(BACKENDS))
def backend_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def ledger(backend_name: str, tmp_path: Path) -> AsyncIterator[Ledger]:
    """An empty queue, on which a test opens what it needs."""
    ledger = Ledger(backend_name, tmp_path)
    yield ledger
    await ledger.close()


@pytest.fixture
async def queue(ledger: Ledger) -> JobQueue:
    """A queue that is open and empty."""
    return await ledger.open()


@pytest.fixture
async def member(ledger: Ledger, queue: JobQueue) -> Member:
    """A worker process of `queue` that handles "work"."""
    return await ledger.join(queue)
