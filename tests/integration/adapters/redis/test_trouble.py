"""The server killed, restarted, frozen or emptied while workers run: said, and survived."""

import signal
from collections.abc import AsyncIterator

import pytest
import redis

from penstock import Job, JobState, Penstock
from penstock.adapters.redis import RedisQueue, connections
from penstock.errors import QueueUnavailable
from penstock.model.ids import new_id
from tests.conformance.support import claim, completed, new_jobs, settle
from tests.support.cpu_time import cpu_share
from tests.support.database_servers import RedisServer
from tests.support.waiting import PATIENCE, look_on, until
from tests.support.worker_processes import Farm

LONG = 600.0
"""A lease so long that nothing comes back by its end."""
QUICK = 0.5
"""Seconds an answer may take while the server is frozen."""


@pytest.fixture(params=["redis", "valkey"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[RedisServer]:
    server = RedisServer(request.param, durable=True).start()
    yield server
    server.remove()


@pytest.fixture
def farm(farm: Farm, server: RedisServer) -> Farm:
    farm.url = f"{server.url}?namespace={new_id()}"
    return farm


async def all_completed(app: Penstock, jobs: list[Job]) -> None:
    """Long before a lease ends."""
    for job in jobs:
        done = await app.wait(job.id, timeout=PATIENCE)
        assert done.state is JobState.COMPLETED, done


async def test_worker_lives_through_a_crash_of_the_server(farm: Farm, server: RedisServer) -> None:
    app = farm.app(lease_seconds=LONG)
    async with app.running() as orchestrator:
        jobs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 2)
        waiting = await app.enqueue_many("work", [{"n": n} for n in range(20)])
        await until(lambda: len(farm.side.notes(kind="gated")) == 2, "two jobs to run")
        server.kill()
        farm.gate.touch()
        degraded = await until(lambda: orchestrator.degraded, "the worker to be degraded")
        assert "cannot reach redis://127.0.0.1" in degraded
        assert await cpu_share(1.0) < 0.2
        with pytest.raises(QueueUnavailable, match="is it running"):
            await app.enqueue("work", {"n": 1})

        server.start()
        await all_completed(app, jobs + waiting)
        assert farm.side.runs() == {job.id: 1 for job in jobs + waiting}
        await until(lambda: orchestrator.degraded is None, "the worker to recover")
        new = await app.enqueue("work", {"n": 2})
        await all_completed(app, [new])


async def test_worker_process_goes_on_after_a_restart_of_the_server(
    farm: Farm, server: RedisServer
) -> None:
    await farm.start(lease_seconds=LONG)
    app = farm.app()
    async with app:
        before = await app.enqueue_many("work", [{"n": n} for n in range(30)])
        server.stop()
        server.start()
        after = await app.enqueue_many("work", [{"n": n} for n in range(30)])
        await all_completed(app, before + after)


async def test_frozen_server_is_noticed_and_survived(
    farm: Farm, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 8.0)  # of what is under way by then
    app = farm.app(lease_seconds=LONG)
    async with app.running() as orchestrator:
        jobs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 2)
        await until(lambda: len(farm.side.notes()) == 2, "two jobs to run")
        server.freeze()
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(connections, "ANSWER_SECONDS", QUICK)
            farm.gate.touch()
            degraded = await until(lambda: orchestrator.degraded, "the worker to be degraded")
            assert "did not answer in time" in degraded
            assert await cpu_share(1.0) < 0.2

        server.thaw()
        await all_completed(app, jobs)
        assert farm.side.runs() == {job.id: 1 for job in jobs}
        await until(lambda: orchestrator.degraded is None, "the worker to recover")


async def test_worker_joins_again_when_the_server_has_lost_everything(
    farm: Farm, server: RedisServer
) -> None:
    app = farm.app()
    async with app.running():
        await all_completed(app, [await app.enqueue("work", {"n": 1})])
        server.stop()
        for path in server.folder.rglob("*.aof"):
            path.unlink()
        for path in server.folder.rglob("*.manifest"):
            path.unlink()
        for path in server.folder.rglob("*.rdb"):
            path.unlink()
        server.start()
        new = await until(lambda: _enqueued(app), "the server to be back")
        await all_completed(app, [new])


async def test_late_outcome_never_touches_another_job_after_the_server_lost_its_last_second(
    server: RedisServer,
) -> None:
    """Its numbers are used again then."""
    queue = RedisQueue(server.url)
    await queue.open()
    await queue.enqueue(new_jobs(1))
    member = await queue.join(["work"], 10, 60.0)
    (old,) = await claim(member)
    with redis.Redis.from_url(server.url) as admin:
        admin.flushall()
    (new,) = await queue.enqueue(new_jobs(1))
    again = await queue.join(["work"], 10, 60.0)
    (lease,) = await claim(again)
    assert (lease.seq, lease.token) == (old.seq, old.token)
    late = completed(old, '"of another job"')

    assert await settle(member, late) == [late]
    assert (await queue.get([new.id]))[new.id].state is JobState.RUNNING
    assert await settle(again, completed(lease, '"its own"')) == []
    assert (await queue.get([new.id]))[new.id].result == "its own"
    await again.leave()
    await queue.close()


async def _enqueued(app: Penstock) -> Job | None:
    try:
        return await app.enqueue("work", {"n": 2})
    except QueueUnavailable:
        return None


async def test_everything_is_done_after_a_worker_process_was_killed(farm: Farm) -> None:
    first = await farm.start(lease_seconds=LONG)
    app = farm.app()
    async with app:
        jobs = await app.enqueue_many("work", [{"n": n, "seconds": 0.02} for n in range(60)])
        await until(lambda: len(farm.side.notes()) >= 10, "some to run")
        first.send(signal.SIGKILL)
        await first.exit()
        begun = set(farm.side.runs())
        stored = await app.queue.get([job.id for job in jobs])
        ended = {job.id for job in stored.values() if job.state is JobState.COMPLETED}
        await farm.start(lease_seconds=LONG)
        await all_completed(app, jobs)
        done = await app.queue.get([job.id for job in jobs])
        assert all(job.attempts <= 2 for job in done.values())
        # Twice ran what was running at that moment, or had ended and was not stored yet.
        twice = {job for job, runs in farm.side.runs().items() if runs > 1}
        assert twice <= begun - ended


@pytest.mark.alone
async def test_idle_worker_costs_next_to_nothing(farm: Farm) -> None:
    app = farm.app(upkeep_seconds=0.5)
    async with app.running():
        await look_on(0.5)  # what a start costs is not counted
        assert min([await cpu_share(1.0) for _ in range(3)]) < 0.005 * 5
