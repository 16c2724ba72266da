"""The queues and stores every conformance test runs against."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.adapters.sql.tasks import TaskStore
from penstock.ports.queue import JobQueue, Member
from tests.conformance import simulated
from tests.conformance.access_support import STORES, give_place_back, new_place
from tests.conformance.support import PATIENT, SUITE, Ledger
from tests.conformance.task_support import tasks_at


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"loop": simulated.new_loop}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [one for one in items if is_simulated(one) and one.get_closest_marker("real")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if one not in left]


@pytest.fixture(autouse=True)
def _simulated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test of the model on its loop."""
    with ExitStack() as entered:
        if is_simulated(request.node):
            entered.enter_context(simulated.simulated())
        yield


def is_simulated(test: pytest.Item) -> bool:
    parameters = getattr(test, "callspec", None)
    return parameters is not None and parameters.params.get("backend_name") == simulated.NAME


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow a machine is, a call is not given up."""
    for where, name, value in PATIENT:
        monkeypatch.setattr(where, name, value)


@pytest.fixture(params=sorted(SUITE))
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
