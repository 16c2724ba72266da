"""The virtual clock of a test, and the faults that go with it."""

import asyncio
from datetime import timedelta

import pytest

from penstock import JobContext, JobState, Penstock
from penstock.errors import JobFailed, PenstockError, ValidationError, WaitTimeout
from penstock.testing import (
    SimulatedProvider,
    SimulatedWorker,
    VirtualClock,
    assert_enqueued,
    own_queue,
    refute_enqueued,
)
from tests.integration.testing.shop import Paid, app, charge, mail, remind

RETRIES = 10.0
"""Seconds before the first retry, at most; see `shop`."""


async def test_nothing_happens_until_time_passes(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    before = penstock_clock.now()
    job = await mail.enqueue(to="ada")
    await asyncio.sleep(0.01)
    assert (await job.get()).state is JobState.QUEUED
    assert penstock_clock.now() - before < timedelta(seconds=0.05)
    penstock_clock.advance()
    assert (await job.get()).result == "ada, from nowhere"
    async with penstock_app, penstock_app.running():  # as code under test may do
        assert await penstock_app.counts() is not None


async def test_what_is_due_runs_in_its_order(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    ran: list[str] = []

    @penstock_app.job("note")
    async def note(ctx: JobContext, what: str) -> None:
        ran.append(what)

    @penstock_app.job("tick", every=3600)
    async def tick(ctx: JobContext) -> None:
        assert ctx.tick is not None
        ran.append("tick")

    for what, hours in (("late", 2.5), ("soon", 0.001), ("never", 4)):
        await penstock_app.enqueue("note", {"what": what}, delay=hours * 3600)
    await penstock_app.enqueue("refuse")
    late = penstock_clock.now() + timedelta(hours=1)
    await remind.with_options(deadline=late).enqueue(order="lamp")
    nap = await remind.enqueue(order="book")
    penstock_clock.advance(hours=3)
    assert [one for one in ran if one != "tick"] == ["soon", "late"]
    assert ran.count("tick") == 4, "three, and the last before the worker came"
    assert_enqueued("refuse", state="failed")
    [overdue] = assert_enqueued("remind", {"order": "lamp"}, state="failed")
    assert overdue.error is not None
    assert overdue.error.type == "DeadlineExceeded"
    refute_enqueued("mail")
    penstock_clock.advance(timedelta(days=3))
    assert_enqueued("mail", {"to": "book"}, state="completed", parent_id=nap.id)


async def test_a_schedule_that_is_made_meanwhile_has_its_ticks(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    await penstock_app.schedules.set("daily", "mail", {"to": "ada"}, every=86400)
    penstock_clock.advance(days=3)
    assert_enqueued("mail", {"to": "ada"}, times=3, state="completed")
    with penstock_app.sync() as q:
        assert [one.name for one in q.schedules.list()] == ["daily"]


def test_who_waits_lets_time_pass_and_no_more_than_asked(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    with penstock_app.sync() as q:
        began, job = penstock_clock.time(), q.enqueue("remind", {"order": "book"})
        with pytest.raises(WaitTimeout):
            q.wait(job.id, timeout=60)
        assert 60 <= penstock_clock.time() - began < 61
        assert [event.kind for event in q.follow(job.id)] == ["step", "end"]
        assert 3 * 86400 <= penstock_clock.time() - began < 3 * 86400 + 2
        q.drain()
        assert q.run(mail.ref(assert_enqueued("mail")[0].id).result()) == "book, from nowhere"
        with pytest.raises(JobFailed):
            q.result(q.enqueue("refuse").id)


async def test_a_429_is_asked_again_after_the_time_it_names(
    penstock_app: Penstock, penstock_clock: VirtualClock, penstock_provider: SimulatedProvider
) -> None:
    penstock_provider.answers(429, retry_after=5)
    job = await charge.enqueue(order="book")
    penstock_clock.advance(seconds=4)
    assert len(penstock_provider.requests) == 1
    penstock_clock.advance(seconds=2)
    assert len(penstock_provider.requests) == 2
    assert await job.result() == Paid("book", (1, 0))


async def test_a_provider_that_was_down_is_found_up_again(
    penstock_app: Penstock, penstock_clock: VirtualClock, penstock_provider: SimulatedProvider
) -> None:
    penstock_provider.down(for_=60, host="bank.example")
    job = await charge.enqueue(order="book")
    penstock_clock.advance(seconds=59)
    assert (await job.get()).state is not JobState.COMPLETED
    penstock_clock.advance(seconds=10)
    done = await job.get()
    assert done.state is JobState.COMPLETED
    assert done.attempts < 4, "an outage of the lane costs no attempts"


@pytest.mark.parametrize(
    ("point", "asked"), [("request", 2), ("step:ask", 2), ("recorded:ask", 1), ("end", 1)]
)
async def test_a_charge_is_not_doubled_wherever_its_worker_dies(
    penstock_app: Penstock,
    penstock_provider: SimulatedProvider,
    penstock_worker: SimulatedWorker,
    point: str,
    asked: int,
) -> None:
    penstock_worker.killed_at(point)
    job = await charge.enqueue(order="book")
    assert await job.result() == Paid("book", (1, 0))
    keys = [request.headers["Idempotency-Key"] for request in penstock_provider.requests]
    assert (len(keys), len(set(keys))) == (asked, 1)
    assert penstock_worker.deaths == [point]
    done = await job.get()
    assert [run.outcome for run in done.history] == ["lost"]


async def test_a_plain_handler_is_killed_in_its_thread(
    penstock_app: Penstock, penstock_worker: SimulatedWorker
) -> None:
    penstock_worker.killed_at("start")
    penstock_worker.killed_at("step:render", times=2)
    penstock_worker.killed_at("end")
    with pytest.raises(ValidationError, match="a worker can be killed at start, request"):
        penstock_worker.killed_at("step")
    job = await mail.with_options(max_retries=10).enqueue(to="ada")
    done = await job.wait()
    assert penstock_worker.deaths == ["start", "step:render", "step:render", "end"]
    assert (done.result, done.attempts) == ("ada, from nowhere", 5)


def test_code_that_waits_in_a_handler_is_on_the_same_clock(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    @penstock_app.job("plain")
    def plain(ctx: JobContext) -> str:
        with penstock_app.sync() as q:
            return str(q.result(q.enqueue("mail", {"to": "ada"}).id))

    @penstock_app.job("patient")
    async def patient(ctx: JobContext) -> str:
        await asyncio.sleep(30)
        job = await mail.enqueue(to="bob")
        return await job.result()

    with penstock_app.sync() as q:
        plainly, patiently = q.enqueue("plain"), q.enqueue("patient")
        assert q.result(plainly.id) == "ada, from nowhere"
        assert q.get(patiently.id).state is JobState.RUNNING
        assert q.result(patiently.id) == "bob, from nowhere"


def test_a_handler_that_opens_a_connection_of_its_own_is_told(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    @penstock_app.job("connect", max_retries=0)
    async def connect(ctx: JobContext) -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    with penstock_app.sync() as q, pytest.raises(JobFailed, match="no network of their own"):
        q.result(q.enqueue("connect").id)


def test_a_lifespan_that_fails_is_told(penstock_source: Penstock) -> None:
    other = Penstock("sqlite:///never.db", lifespan=lambda app: 1 / 0)  # type: ignore[arg-type,return-value]
    other.job("work")(lambda ctx: None)
    with own_queue(other, clock=True) as own, pytest.raises(PenstockError, match="division"):
        own.clock.advance(1)


def test_time_goes_forward_only(penstock_clock: VirtualClock) -> None:
    with pytest.raises(ValidationError, match="not by -1 s"):
        penstock_clock.advance(seconds=-1)


def test_the_app_is_restored(penstock_source: Penstock) -> None:
    before = dict(vars(app))
    with own_queue(app, clock=True) as own, pytest.raises(PenstockError, match="own methods"):
        _ = own.app.queue.listen
    assert vars(app) == before
