"""What a worker process sets up before its first job is there for all, and put away after the
last."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock import JobContext, Penstock
from penstock.errors import ConfigError, LifespanError, QueueError
from tests.support.cli import Cli
from tests.support.worker_processes import Farm


@dataclass
class Pool:
    app: Penstock
    events: list[str] = field(default_factory=list)


async def test_every_job_is_given_what_the_lifespan_yields(farm: Farm) -> None:
    pools: list[Pool] = []

    @asynccontextmanager
    async def lifespan(app: Penstock) -> AsyncIterator[Pool]:
        pools.append(pool := Pool(app, ["open"]))
        yield pool
        pool.events.append("closed")

    app = farm.bare(lifespan=lifespan)

    @app.job
    async def add(ctx: JobContext[Pool], n: int) -> int:
        await asyncio.sleep(0)
        ctx.state.events.append(f"job {n}")
        return n

    @app.job
    def add_in_thread(ctx: JobContext[Pool], n: int) -> int:
        ctx.state.events.append(f"job {n}")
        return n

    async with app:
        jobs = await app.enqueue_many("add", [{"n": n} for n in range(3)])
        jobs += await app.enqueue_many("add_in_thread", [{"n": 3}])
        assert pools == [], "whoever only enqueues has no use for it"
        async with app.running():
            assert [await app.result(job.id, timeout=60) for job in jobs] == [0, 1, 2, 3]
            assert pools[0].events[-1] != "closed"
        async with app.running():  # in another process it would be another, too
            pass
    first, second = pools
    assert first.app is app
    assert (first.events[0], first.events[-1]) == ("open", "closed")
    assert sorted(first.events[1:-1]) == ["job 0", "job 1", "job 2", "job 3"]
    assert second.events == ["open", "closed"]


async def test_without_a_lifespan_there_is_no_state(farm: Farm) -> None:
    app = farm.bare()

    @app.job
    async def look(ctx: JobContext) -> bool:
        return ctx.state is None

    async with app.running():
        assert await app.result((await app.enqueue("look")).id, timeout=60)


async def test_running_jobs_have_ended_when_the_lifespan_does(farm: Farm) -> None:
    events: list[str] = []
    started = asyncio.Event()

    @asynccontextmanager
    async def lifespan(app: Penstock) -> AsyncIterator[None]:
        # A task group has to be left in the task that entered it.
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(asyncio.Event().wait())
            yield
            beside.cancel()
        events.append("closed")

    app = farm.bare(lifespan=lifespan)

    @app.job
    async def slow(ctx: JobContext) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            events.append("job ended")

    async with app:
        await app.enqueue("slow")
        orchestrator = app.orchestrator()
        await orchestrator.start()
        await started.wait()
        await orchestrator.stop(grace=0)
    assert events == ["job ended", "closed"]


async def test_lifespan_that_fails_to_start_lets_no_job_run(farm: Farm) -> None:
    @asynccontextmanager
    async def lifespan(app: Penstock) -> AsyncIterator[None]:
        if app.handlers:
            raise OSError("no database at db:5432")
        yield

    app = farm.bare(lifespan=lifespan)

    @app.job
    async def work(ctx: JobContext) -> None: ...

    async with app:
        job = await app.enqueue("work")
        with pytest.raises(LifespanError, match=r"OSError: no database at db:5432 \(.*line \d+\)"):
            async with app.running():
                pass
        assert (await app.get(job.id)).attempts == 0
        assert await app.processes() == [], "it has joined nothing"


async def test_lifespan_is_left_when_the_queue_cannot_be_joined(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Penstock) -> AsyncIterator[None]:
        events.append("open")
        yield
        events.append("closed")

    async def join(*args: object) -> None:
        raise QueueError("not today")

    app = farm.bare(lifespan=lifespan)
    app.job(work)
    async with app:
        monkeypatch.setattr(app.queue, "join", join)
        with pytest.raises(QueueError, match="not today"):
            await app.orchestrator().start()
    assert events == ["open", "closed"]


async def work(ctx: JobContext) -> None: ...


async def test_lifespan_that_fails_to_stop_is_told_and_stops_nothing(
    farm: Farm, caplog: pytest.LogCaptureFixture
) -> None:
    @asynccontextmanager
    async def lifespan(app: Penstock) -> AsyncIterator[None]:
        yield
        raise OSError("it would not close")

    app = farm.bare(lifespan=lifespan)
    app.job(work)
    async with app.running() as orchestrator:
        await app.result((await app.enqueue("work")).id, timeout=60)
    assert not orchestrator.running
    assert "the lifespan failed" in caplog.text
    assert "it would not close" in caplog.text


async def test_start_that_is_cancelled_leaves_the_lifespan(farm: Farm) -> None:
    events: list[str] = []
    entered = asyncio.Event()

    @asynccontextmanager
    async def lifespan(app: Penstock) -> AsyncIterator[None]:
        entered.set()
        try:
            await asyncio.sleep(3600)
            yield
        finally:
            events.append("closed")

    app = farm.bare(lifespan=lifespan)
    app.job(work)
    async with app:
        starting = asyncio.create_task(app.orchestrator().start())
        await entered.wait()
        starting.cancel()
        await asyncio.wait([starting])
        assert starting.cancelled()
    assert events == ["closed"]


def test_lifespan_that_is_no_context_manager_is_refused() -> None:
    async def lifespan(app: Penstock) -> AsyncIterator[None]:
        yield

    with pytest.raises(ConfigError, match="@asynccontextmanager"):
        Penstock("sqlite:///none.db", lifespan=lifespan)  # type: ignore[arg-type]


def test_worker_whose_lifespan_fails_says_why_and_ends(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from contextlib import asynccontextmanager\n"
        "from penstock import Penstock\n"
        "@asynccontextmanager\n"
        "async def lifespan(app):\n"
        "    raise OSError('no database')\n"
        "    yield\n"
        "app = Penstock(lifespan=lifespan)\n"
        "@app.job\n"
        "async def work(ctx): ...\n"
    )
    done = cli("worker", "broken:app", code=1)
    assert "error: the lifespan failed to start: OSError: no database" in done.err
    assert "broken.py line 5" in done.err
    assert "Traceback" not in done.err
