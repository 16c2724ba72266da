"""Jobs as part of a caller's transaction, and logs written by transactions that overlap."""

import asyncio
import contextlib
import itertools
import logging

import pytest

from penstock import JobContext, JobState, Penstock
from penstock.errors import ConfigError, JobNotFound, KeyConflict, LogStopped, ParentEnded
from penstock.ports.queue import Topic
from tests.support.postgres import new_url, psql
from tests.support.waiting import PATIENCE, look_on, until

pytestmark = pytest.mark.usefixtures("patient_postgres")


async def test_job_is_there_when_the_callers_transaction_is_committed() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        await mine.execute("CREATE TABLE penstock.orders (id text)")
        ready = app.queue.listen(Topic.READY)
        assert await ready.wait(PATIENCE), "no connection for wake-ups"
        while await ready.wait(0.2):
            pass
        async with mine.connection.transaction():
            await mine.execute("INSERT INTO penstock.orders VALUES ('o1')")
            job = await app.enqueue("ship", {"order": "o1"}, conn=mine.connection)
            many = await app.enqueue_many("ship", [{}] * 3, log="paper", conn=mine.connection)
            with pytest.raises(JobNotFound):
                await app.get(job.id)
            assert not await ready.wait(0.1), "nobody is woken before there is anything to see"
        assert await ready.wait(PATIENCE)
        assert (await app.get(job.id)).payload == {"order": "o1"}
        assert [(await app.get(one.id)).id for one in many] == [one.id for one in many]
        assert [change.what for change in await app.changes("paper")] == ["queued"] * 3


async def test_job_is_gone_when_the_callers_transaction_is_rolled_back() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        transaction = mine.connection.transaction()
        await transaction.start()
        job = await app.enqueue("ship", {}, key="o1", log="paper", conn=mine.connection)
        await transaction.rollback()
        with pytest.raises(JobNotFound):
            await app.get(job.id)
        assert await app.changes("paper") == []
        again = await app.enqueue("ship", {"other": True}, key="o1")
        assert again.id != job.id, "its key is free"


async def test_key_in_a_transaction_finds_its_job_or_is_refused_and_the_rest_goes_on() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        old = await app.enqueue("ship", {"n": 1}, key="o1")
        async with mine.connection.transaction():
            same = await app.enqueue("ship", {"n": 1}, key="o1", conn=mine.connection)
            assert same.id == old.id
            with pytest.raises(KeyConflict):
                await app.enqueue("ship", {"n": 2}, key="o1", conn=mine.connection)
            new = await app.enqueue("ship", {"n": 3}, conn=mine.connection)
        assert {job.id for job in await app.jobs()} == {old.id, new.id}


async def test_stopped_task_refuses_a_job_in_a_transaction_and_the_rest_goes_on() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        await app.stop_log("paper")
        async with mine.connection.transaction():
            with pytest.raises(LogStopped):
                await app.enqueue("ship", log="paper", conn=mine.connection)
            new = await app.enqueue("ship", log="other", conn=mine.connection)
        assert [job.id for job in await app.jobs()] == [new.id]


async def test_stop_waits_for_a_transaction_that_has_stored_a_job_and_cancels_it() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        async with mine.connection.transaction():
            job = await app.enqueue("ship", log="paper", conn=mine.connection)
            stopping = asyncio.create_task(app.stop_log("paper"))
            await look_on(0.2)
            assert not stopping.done()
        assert await stopping == (1, 0)
        assert (await app.get(job.id)).state is JobState.CANCELLED


@pytest.mark.timeout(240)
async def test_stops_and_settlements_and_enqueues_never_wait_in_a_circle(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All lock jobs in order and logs after. (PostgreSQL ends a circle after a second.)"""
    caplog.set_level(logging.DEBUG, "penstock.postgres")
    url = new_url()
    async with Penstock(url, retry_base_seconds=0.001, max_retries=1000) as app:

        @app.job("flawed")
        async def flawed(ctx: JobContext, n: int) -> None:
            await ctx.progress(0.5)
            if n % 2:
                raise ValueError

        async def feed(log: str) -> None:
            with contextlib.suppress(LogStopped):
                for _ in itertools.count():
                    await app.enqueue_many("flawed", [{"n": n} for n in range(4)], log=log)

        async with app.running(), app.running(), asyncio.timeout(200):
            for n in range(10):
                feeding = [asyncio.create_task(feed(f"paper-{n}")) for _ in range(3)]
                await app.changes(f"paper-{n}", since=60, wait=30)
                await app.stop_log(f"paper-{n}", running=bool(n % 2))
                await asyncio.gather(*feeding)
            await app.drain()
        left = await app.jobs(states=["queued", "running"])
    assert left == []
    assert "deadlock" not in caplog.text


@pytest.mark.timeout(240)
async def test_cancels_of_families_never_wait_in_a_circle(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Parents enqueue and tell their progress while they, or their log, are ended."""
    caplog.set_level(logging.DEBUG, "penstock.postgres")
    url = new_url()
    async with Penstock(url, retry_base_seconds=0.001, max_retries=1000) as app:

        @app.job("parent")
        async def parent(ctx: JobContext) -> None:
            for n in itertools.count():
                await ctx.progress(0.5)
                await asyncio.gather(*(ctx.enqueue("child", {"n": n}) for _ in range(2)))

        @app.job("child")
        async def child(ctx: JobContext, n: int) -> None:
            await ctx.progress(0.5)
            if n % 2:
                raise ValueError

        async with app.running(), app.running(), asyncio.timeout(200):
            for n in range(6):
                parents = await app.enqueue_many("parent", [{}] * 3, log=f"paper-{n}")
                await app.changes(f"paper-{n}", since=40, wait=30)
                if n % 2:
                    await app.stop_log(f"paper-{n}", running=True)
                else:
                    await asyncio.gather(*(app.cancel(job.id) for job in parents))
            await app.drain()
        left = await app.jobs(states=["queued", "running"])
    assert left == []
    assert "deadlock" not in caplog.text


async def test_child_in_a_transaction_is_stored_before_its_parent_can_be_cancelled() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        begun, stored = asyncio.Event(), asyncio.Event()

        @app.job("parent")
        async def parent(ctx: JobContext) -> None:
            async with mine.connection.transaction():
                await ctx.enqueue("ship", conn=mine.connection)
                begun.set()
                await stored.wait()
            await asyncio.Event().wait()

        async with app.running():
            job = await app.enqueue("parent")
            await asyncio.wait_for(begun.wait(), PATIENCE)
            cancelling = asyncio.create_task(app.cancel(job.id))
            await look_on(0.2)
            assert not cancelling.done()
            stored.set()
            assert (await cancelling).state is JobState.CANCELLED
            (child,) = await app.jobs(parent_id=job.id)
            assert child.state is JobState.CANCELLED


async def test_child_of_a_run_that_is_over_spoils_no_transaction() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        begun, told = asyncio.Event(), asyncio.Event()

        @app.job("stubborn")
        async def stubborn(ctx: JobContext) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                async with mine.connection.transaction():
                    with pytest.raises(ParentEnded):
                        await ctx.enqueue("ship", conn=mine.connection)
                    await app.enqueue("bill", conn=mine.connection)
                told.set()

        async with app.running():
            job = await app.enqueue("stubborn")
            await asyncio.wait_for(begun.wait(), PATIENCE)
            await app.cancel(job.id)
            await asyncio.wait_for(told.wait(), PATIENCE)
        assert {one.kind for one in await app.jobs()} == {"stubborn", "bill"}


async def test_open_transaction_of_a_caller_holds_up_nobody_elses_enqueue() -> None:
    url, lanes = new_url(), {"api": {"min_interval_seconds": 0.0}}
    async with Penstock(url, lanes=lanes) as app, psql(url) as mine:

        @app.job("quick", lane="api")
        async def quick(ctx: object) -> None:
            pass

        async with mine.connection.transaction():
            await app.enqueue("quick", conn=mine.connection)
            async with asyncio.timeout(60), app.running():
                jobs = [await app.enqueue("quick") for _ in range(3)]
                for job in jobs:
                    await app.wait(job.id)


async def test_conn_without_a_transaction_is_refused() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        with pytest.raises(ConfigError, match="transaction open"):
            await app.enqueue("ship", conn=mine.connection)
        assert await app.jobs() == []


async def test_writers_that_would_commit_in_reverse_order_leave_no_gap_for_a_reader() -> None:
    """The second takes its version only when the first is committed: a reader that goes on from
    the newest version it has seen misses nothing."""
    url = new_url()
    async with Penstock(url) as app, psql(url) as first:
        seen: list[int] = []

        async def read() -> None:
            since = seen[-1] if seen else 0
            seen.extend(change.version for change in await app.changes("paper", since))

        transaction = first.connection.transaction()
        await transaction.start()
        early = await app.enqueue("work", log="paper", conn=first.connection)
        late = asyncio.create_task(app.enqueue("work", log="paper"))
        blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        await until(lambda: first.fetchval(blocked), "the second to wait")
        await read()
        assert seen == []
        assert not late.done()
        await transaction.commit()
        await read()
        second = await late
        await read()

        assert seen == [1, 2]
        assert [change.job_id for change in await app.changes("paper")] == [early.id, second.id]
