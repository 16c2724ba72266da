"""The queues and stores every conformance test runs against."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock.adapters.sql.tasks import TaskStore
from penstock.ports.queue import JobQueue, Member
from tests.conformance.access_support import STORES, give_place_back, new_place
from tests.conformance.support import BACKENDS, PATIENT, Ledger
from tests.conformance.task_support import tasks_at


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow a machine is, a call is not given up."""
    for where, name, value in PATIENT:
        monkeypatch.setattr(where, name, value)


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


@pytest.fixture(params=sorted(STORES))
def store_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(store_name: str, tmp_path: Path) -> Iterator[str]:
    """Where a store can be."""
    url = new_place(store_name, tmp_path)
    yield url
    give_place_back(store_name, url)


@pytest.fixture
async def store(store_name: str, url: str) -> AsyncIterator[TaskStore]:
    """A store of research tasks that is open and empty."""
    async with tasks_at(store_name, url) as store:
        yield store


@pytest.fixture
async def other(store_name: str, url: str, store: TaskStore) -> AsyncIterator[TaskStore]:
    """The same store, as another process has it."""
    async with tasks_at(store_name, url) as other:
        yield other
