"""Schedules that are rows: a tick makes one job, whoever tries, and none is lost by a change."""

import asyncio
from dataclasses import replace
from math import floor

import pytest

from penstock.engine.enqueuer import Enqueuer
from penstock.engine.handlers import Handlers
from penstock.engine.schedule_ticks import ScheduleTicks
from penstock.errors import ScheduleChanged, ScheduleNotFound
from penstock.model.ids import new_id
from penstock.model.job import Job
from penstock.model.tick import schedule_tick_key, tick_of
from penstock.ports.queue import JobFilter, JobQueue, Topic
from penstock.ports.schedules import ScheduleRow, ScheduleTick
from penstock.wiring.schedules import Schedules
from tests.conformance.support import Ledger, add_keyed, claim_one, completed, new_jobs, settle
from tests.support.waiting import PATIENCE

KIND = "report"
HOUR = 3600.0
YEAR = 366 * 86400.0
"""An interval whose ticks come in no test by themselves."""


def schedules_of(queue: JobQueue) -> Schedules:
    handlers = Handlers()
    return Schedules(queue, handlers, Enqueuer(queue, handlers))


async def row_of(queue: JobQueue, name: str = "nightly", tenant: str = "default") -> ScheduleRow:
    row = await queue.schedules.get(tenant, name)
    assert row is not None
    return row


async def make_due(queue: JobQueue, seconds: float, name: str = "nightly") -> ScheduleRow:
    """Let the next tick have been due so long ago."""
    row = await row_of(queue, name)
    due = replace(row, next_at=floor(queue.now() - seconds), revision=new_id())
    assert await queue.schedules.put(due, row.revision)
    return due


async def jobs_of(queue: JobQueue, tenant: str = "default") -> list[Job]:
    return await queue.find(JobFilter(kind=KIND, tenant=tenant), 100)


async def tick(queue: JobQueue) -> None:
    await ScheduleTicks(queue).enqueue_due()


async def test_a_tick_makes_one_job_whoever_tries(ledger: Ledger) -> None:
    queues = [await ledger.open() for _ in range(4)]
    queue = queues[0]
    made = await schedules_of(queue).set("nightly", KIND, {"n": 1}, every=YEAR, priority="high")
    assert await queue.next_schedule(queue.now()) == made.next_at
    await make_due(queue, 1.0)
    await asyncio.gather(*(tick(one) for one in queues for _ in range(2)))
    (job,) = await jobs_of(queue)
    row = await row_of(queue)
    assert (job.payload, job.priority, row.last_job) == ({"n": 1}, 10, job.id)
    assert row.last_at is not None
    assert tick_of(job.id, job.kind, job.key, job.tenant) == row.last_at
    assert tick_of(job.id, job.kind, job.key, "another") is None
    assert row.next_at == made.next_at

    unseen = ScheduleTick(replace(row, revision="y"), "x")
    with pytest.raises(ScheduleChanged):
        await queue.enqueue(new_jobs(kind=KIND, tick=unseen))
    assert len(await jobs_of(queue)) == 1, "stored with its tick or not at all"
    assert await row_of(queue) == row


async def test_the_newest_missed_tick_is_made_up_once(ledger: Ledger) -> None:
    queue = await ledger.open()
    await schedules_of(queue).set("nightly", KIND, every=60, overlap=True)
    before = queue.now()
    await make_due(queue, 3000.0)
    await tick(queue)
    row = await row_of(queue)
    assert row.last_at is not None
    assert before - 60 <= row.last_at <= queue.now()
    assert row.next_at == row.last_at + 60

    yearly = await schedules_of(queue).set("yearly", KIND, every=YEAR, catch_up=60)
    await make_due(queue, HOUR, "yearly")
    await tick(queue)
    row = await row_of(queue, "yearly")
    assert (row.next_at, row.last_at) == (yearly.next_at, None), "too late for it"
    made = [one for one in await jobs_of(queue) if (one.key or "").endswith(" of yearly")]
    assert not made


async def test_a_tick_whose_key_is_taken_is_skipped_and_not_counted(ledger: Ledger) -> None:
    queue = await ledger.open()
    made = await schedules_of(queue).set("nightly", KIND, every=YEAR)
    due = await make_due(queue, 1.0)
    assert due.next_at is not None
    key = schedule_tick_key("nightly", due.next_at)
    taken = await add_keyed(queue, key, '{"n":2}', kind=KIND)
    await tick(queue)
    assert [one.id for one in await jobs_of(queue)] == [taken.id]
    row = await row_of(queue)
    assert (row.next_at, row.last_at, row.last_job) == (made.next_at, None, None)


async def test_a_tick_is_skipped_while_the_job_of_the_last_goes_on(ledger: Ledger) -> None:
    queue = await ledger.open()
    member = await ledger.join(queue, KIND)
    await schedules_of(queue).set("nightly", KIND, every=YEAR)
    for _ in range(2):
        await make_due(queue, 2.0)
        await tick(queue)
    (first,) = await jobs_of(queue)
    lease = await claim_one(member, KIND)
    assert lease.id == first.id
    await settle(member, completed(lease))
    row = await row_of(queue)
    assert row.last_at is not None
    await make_due(queue, 1.0)
    await tick(queue)
    assert (await row_of(queue)).last_at != row.last_at
    assert len(await jobs_of(queue)) == 2


async def test_a_clock_that_was_ahead_silences_no_schedule(ledger: Ledger) -> None:
    queue = await ledger.open()
    await schedules_of(queue).set("nightly", KIND, every=60)
    await schedules_of(queue).set("other", KIND, every=YEAR)
    row, now = await row_of(queue), queue.now()
    wrong = replace(row, next_at=now + HOUR, counted_at=now + HOUR, revision="ahead")
    assert await queue.schedules.put(wrong, row.revision)
    assert await queue.next_schedule(now) == 0
    await tick(queue)
    row = await row_of(queue)
    assert row.next_at is not None
    assert row.next_at <= queue.now() + 60
    assert await queue.next_schedule(queue.now()) != 0
    assert not await jobs_of(queue), "it was not due"


async def test_pause_resume_change_run_and_remove(ledger: Ledger) -> None:
    queue = await ledger.open()
    schedules, listener = schedules_of(queue), queue.listen(Topic.SCHEDULED)
    await schedules.set("nightly", KIND, {"n": 1}, every=60, tenant="other")
    await schedules.set("nightly", KIND, {"n": 1}, cron="0 3 * * *", timezone="Europe/Berlin")
    await listener.wait(PATIENCE)
    same = await schedules.get("nightly")
    await schedules.set("nightly", KIND, {"n": 1}, cron="0 3  * * *", timezone="Europe/Berlin")
    assert await schedules.get("nightly") == same, "nothing has changed"

    await make_due(queue, 1.0)
    assert (await schedules.pause("nightly")).paused
    await tick(queue)
    assert not await jobs_of(queue)
    assert (await schedules.set("nightly", KIND, {"n": 2}, every=30)).paused
    job = await schedules.run_now("nightly")
    assert (job.payload, job.key) == ({"n": 2}, None)
    resumed = await schedules.resume("nightly")
    assert resumed.next_at is not None
    assert resumed.next_at > same.changed_at  # type: ignore[operator]

    assert [(one.tenant, one.name) for one in await schedules.list()] == [
        ("default", "nightly"),
        ("other", "nightly"),
    ]
    assert [one.tenant for one in await schedules.list(tenant="other")] == ["other"]
    assert await schedules.page("other", "nightly", 10) == []
    row = await row_of(queue)
    assert not await queue.schedules.put(replace(row, kind="x"), "another"), "not as it was seen"
    assert not await queue.schedules.put(replace(row, kind="x"), None), "it is there"

    await schedules.remove("nightly")
    for gone in (schedules.get, schedules.pause, schedules.run_now, schedules.remove):
        with pytest.raises(ScheduleNotFound):
            await gone("nightly")
    assert [one.id for one in await jobs_of(queue)] == [job.id], "its jobs stay"
    await schedules.remove("nightly", tenant="other")
    assert await queue.next_schedule(queue.now()) is None
    listener.close()
