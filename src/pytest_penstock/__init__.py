"""The pytest plugin of Penstock: fixtures for tests of an app.

It is loaded in every run of pytest where Penstock is installed, so it loads nothing itself: the
first test that asks for a fixture does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock.testing import SimulatedProvider, SimulatedWorker, VirtualClock


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("penstock_app", "the app that tests are of, as module:name", default="")


@pytest.fixture
def penstock_source(pytestconfig: pytest.Config) -> Penstock:
    """The app that tests are of: what the ini option `penstock_app` names. Override it where that
    is not enough."""
    target = str(pytestconfig.getini("penstock_app"))
    if not target:
        raise pytest.UsageError(
            "penstock_app has no app: set the ini option penstock_app = module:name, or override "
            "the fixture penstock_source in your conftest.py"
        )
    from penstock.cli.load_app import load_app

    return load_app(target)


@pytest.fixture
def penstock_url() -> str | None:
    """Where the queue of a test is. None: in a new SQLite file. Override it to test on a server;
    what is there afterwards is then for your fixture to remove."""
    return None


@pytest.fixture
def penstock_app(
    request: pytest.FixtureRequest, penstock_source: Penstock, penstock_url: str | None
) -> Iterator[Penstock]:
    """The app, on a queue of its own for the test. In an async test it is open."""
    from penstock.testing import own_queue

    asked = request.fixturenames
    clock, provider = "penstock_clock" in asked, "penstock_provider" in asked
    with own_queue(penstock_source, penstock_url, clock=clock, provider=provider):
        if not clock:
            _open_in(request.node, penstock_source)
        yield penstock_source


@pytest.fixture
def penstock_clock(penstock_app: Penstock) -> VirtualClock:
    """A clock that stands still until `penstock_clock.advance(hours=3)`, for the whole test."""
    from penstock.testing.under_test import tested

    return tested().clock


@pytest.fixture
def penstock_provider(penstock_app: Penstock) -> SimulatedProvider:
    """Answers what handlers ask with `ctx.http`."""
    from penstock.testing.under_test import tested

    return tested().provider


@pytest.fixture
def penstock_worker(penstock_clock: VirtualClock) -> Iterator[SimulatedWorker]:
    """The worker process on the virtual clock, which `killed_at("step:charge")` kills."""
    yield penstock_clock.worker
    if unreached := penstock_clock.worker.unreached:
        pytest.fail(f"no run came to {', '.join(unreached)}, where its worker was to be killed")


def _open_in(item: Any, app: Penstock) -> None:
    """Have the app open while an async test runs, in its task: whichever plugin runs it."""
    test = getattr(item, "obj", None)
    if not inspect.iscoroutinefunction(test) or hasattr(test, "hypothesis"):
        return  # each call opens it

    @functools.wraps(test)
    async def opened(**fixtures: Any) -> None:
        async with app:
            await test(**fixtures)

    item.obj = opened
