"""The app of a test: on a queue of its own, and afterwards as it was."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from unittest.mock import ANY

import pytest

from penstock import JobContext, Penstock
from penstock.errors import ConfigError, PenstockError, WaitTimeout
from penstock.testing import (
    SimulatedProvider,
    assert_enqueued,
    inline,
    own_queue,
    refute_enqueued,
)
from tests.conformance.support import BACKENDS
from tests.integration.testing import shop
from tests.integration.testing.shop import charge, mail


@pytest.mark.parametrize("queue", sorted(BACKENDS))
async def test_jobs_are_stored_asserted_and_run_on_each_queue(queue: str, tmp_path: Path) -> None:
    with own_queue(shop.app, BACKENDS[queue].url(tmp_path)):
        job = await mail.enqueue(to="ada")
        assert_enqueued(mail, {"to": "ada"}, times=1, state="queued")
        await shop.app.drain()
        assert await job.result() == "ada, from nowhere"
        with inline():
            assert (await shop.app.enqueue("mail", {"to": "bob"})).result == "bob, from nowhere"


async def test_a_failed_assertion_says_what_was_enqueued_instead(penstock_app: Penstock) -> None:
    await charge.with_options(priority="high", tenant="t").enqueue(order="book", amount=2)
    await penstock_app.enqueue_many("mail", [{"to": "ada"}, {"to": "bob"}])
    assert_enqueued("charge", {"amount": ANY}, priority="high", tenant="t")
    refute_enqueued("charge", tenant="other")
    with pytest.raises(AssertionError) as failed:
        assert_enqueued("charge", {"order": "lamp", "to": {"at": 1}})
    assert str(failed.value).splitlines() == [
        "expected a job of 'charge' with payload {'order': 'lamp', 'to': {'at': 1}}, found none",
        """  charge {"amount": 2, "order": "book"} (queued): """
        "payload['order'] is 'book', not 'lamp'; payload['to'] is not there",
        "  other kinds: mail (2)",
    ]
    with pytest.raises(AssertionError, match="expected 3 jobs of 'mail', found 2"):
        assert_enqueued("mail", times=3)
    with pytest.raises(TypeError, match="attempts: what can be asked of a job is deadline, key"):
        assert_enqueued("mail", attempts=1)


async def test_calls_at_the_same_time_open_it_once(penstock_source: Penstock) -> None:
    with own_queue(penstock_source):
        await asyncio.gather(*(mail.enqueue(to=str(n)) for n in range(10)))
        assert_enqueued("mail", times=10)
        assert penstock_source.home is None


def test_code_that_does_not_await_has_the_same_queue(
    penstock_app: Penstock, penstock_provider: SimulatedProvider
) -> None:
    penstock_provider.answers(201)
    with penstock_app.sync() as q:
        job = q.enqueue("charge", {"order": "book"})
        q.drain()
        assert q.result(job.id) == {"order": "book", "parts": [1, 0]}
    assert [str(request.url) for request in penstock_provider.requests] == [shop.BANK]


def test_nothing_is_left_behind(penstock_source: Penstock) -> None:
    before = dict(vars(penstock_source))
    with own_queue(penstock_source) as own:
        sync = penstock_source.sync()
        sync.enqueue("mail", {"to": "ada"})  # opens it, and nobody closes it

        @penstock_source.job("new")
        async def new(ctx: JobContext) -> None:
            """Registered by the test."""

        assert len(own.jobs()) == 1
        folder = getattr(penstock_source.queue, "folder", None)
    assert vars(penstock_source) == before
    assert "new" not in penstock_source.handlers
    assert folder is not None
    assert not folder.exists()
    assert not [one.name for one in threading.enumerate() if one.name.startswith("penstock")]
    with pytest.raises(ConfigError, match="no app has a queue of its own here"):
        assert_enqueued("mail")


async def test_an_app_that_is_open_gets_no_other_queue(penstock_app: Penstock) -> None:
    with (
        pytest.raises(ConfigError, match="give it a queue of its own before it is opened"),
        own_queue(penstock_app),
    ):
        raise AssertionError("unreachable")


@asynccontextmanager
async def closing_later(app: Penstock) -> AsyncIterator[None]:
    """Open an app, and close what it has opened when it is no longer there itself."""
    await app.__aenter__()
    opened = app._to_close
    yield
    await opened.aclose()


async def test_a_test_that_leaves_the_app_open_is_told(penstock_source: Penstock) -> None:
    open_still = AsyncExitStack()
    with pytest.raises(PenstockError, match="left the app open"), own_queue(penstock_source):
        await open_still.enter_async_context(closing_later(penstock_source))
    await open_still.aclose()


async def test_drain_says_what_is_left(penstock_app: Penstock) -> None:
    await mail.with_options(delay=3600).enqueue(to="ada")
    with pytest.raises(
        WaitTimeout, match=r"mail \w+ is queued \(its time, .*\)\. .* penstock_clock"
    ):
        await penstock_app.drain(timeout=0.05)
