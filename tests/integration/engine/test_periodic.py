"""Periodic jobs in one process: which ticks become jobs, and which do not."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock import JobContext, JobState, Penstock, runtime
from penstock.engine import ticker
from penstock.engine.schedule import Every
from penstock.errors import ConfigError
from penstock.model.tick import tick_key
from tests.conformance.support import BACKENDS
from tests.support.periodic import gaps, in_a_row, jobs_of, last_tick_ago, some_jobs, tick
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import PATIENCE, look_on, until
from tests.support.worker_processes import FAST

SHORT = 0.5
"""Long enough that a busy machine seldom sleeps over a tick, which would be missed."""
PATIENT = {**FAST, "lease_seconds": 60.0}
"""A pause of the machine is no death."""


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return BACKENDS[request.param].url(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def build(url: str, *, settings: dict[str, Any] | None = None, **options: Any) -> Penstock:
    """An app with one periodic kind, whose result is its tick."""
    app = Penstock(url, **{**PATIENT, **(settings or {})})

    @app.job("tidy", **options)
    async def tidy(ctx: JobContext, depth: int = 2) -> tuple[float | None, int]:
        return ctx.tick, depth

    return app


async def test_each_tick_is_one_job_however_many_enqueue_it(url: str) -> None:
    apps = [build(url, every=SHORT, overlap=True) for _ in range(4)]
    async with apps[0].running(), apps[1].running(), apps[2].running(), apps[3].running():
        await in_a_row(apps[0], "tidy", 5, SHORT)
        await apps[0].drain(timeout=PATIENCE)
    async with apps[0]:
        jobs = await jobs_of(apps[0], "tidy")
    assert len({tick(job) for job in jobs}) == len(jobs)
    for job in jobs:
        if job.state is not JobState.COMPLETED:  # the last one, enqueued as they stopped
            continue
        assert job.result == [tick(job), 2], "ctx.tick, and the defaults of the handler"
        assert job.attempts == 1
        # The clock of a server is known as well as it answers quickly.
        assert tick(job) - 1 <= job.enqueued_at < tick(job) + 30


async def test_an_interval_counts_from_1970_and_not_from_the_start_of_a_process(url: str) -> None:
    app = build(url, every=SHORT)
    async with app.running():
        jobs = await some_jobs(app, "tidy", 3)
    assert all((tick(job) / SHORT).is_integer() for job in jobs)
    assert jobs[-1].key == f"tick {datetime.fromtimestamp(tick(jobs[-1]), UTC).isoformat()}"


async def test_a_cron_expression_with_seconds_is_kept(file: str) -> None:
    app = build(file, cron="* * * * * *", timezone="Asia/Tokyo")
    async with app.running():
        await in_a_row(app, "tidy", 3, 1.0)


async def test_the_newest_missed_tick_is_made_up_once(url: str) -> None:
    day = last_tick_ago(60)
    app = build(url, every=day)
    async with app.running():
        [job] = await some_jobs(app, "tidy", 1)
        done = await app.wait(job.id, timeout=60)
    assert done.result == [tick(job), 2]
    assert 50 < time.time() - tick(job) < 120
    async with app.running():  # which finds what the first has made
        await look_on(0.5)
        assert [job.id for job in await app.jobs()] == [done.id]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"catch_up": 300}, {}),
        # Its row would be gone by now if it had been enqueued: nobody can tell.
        ({"catch_up": 3600}, {"retention_seconds": 300}),
    ],
    ids=["past its catch_up", "past the retention"],
)
async def test_a_tick_that_is_too_old_is_left_out(
    file: str, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    late, app = last_tick_ago(600), build(file, every=1.0, settings=settings)
    soon = last_tick_ago(20)

    for kind, every in (("late", late), ("soon", soon)):

        @app.job(kind, every=every, **options)
        async def note(ctx: JobContext) -> None: ...

    async with app.running():
        await some_jobs(app, "soon", 1)
        await some_jobs(app, "tidy", 2)
        assert await app.jobs(kind="late") == []


async def test_a_tick_whose_row_is_purged_does_not_come_back(file: str) -> None:
    app = build(file, every=last_tick_ago(0), settings={"retention_seconds": 5.0})
    async with app.running():
        [job] = await some_jobs(app, "tidy", 1)
        await app.wait(job.id, timeout=60)
    await look_on(5.1)

    async def purged() -> bool:
        return not await app.jobs()

    for _ in range(2):  # a process that starts purges; the next one finds nothing of the tick
        async with app.running():
            await until(purged, "the row to be purged")
            await look_on(0.5)
            assert await app.jobs() == []


async def test_after_a_long_pause_there_is_one_job_and_no_flood(file: str) -> None:
    app = build(file, every=SHORT, overlap=True)
    async with app.running():
        await some_jobs(app, "tidy", 2)
    async with app:
        before = await jobs_of(app, "tidy")
    await look_on(4 * SHORT)
    async with app.running():
        jobs = await some_jobs(app, "tidy", len(before) + 2)
    [missed] = gaps(jobs[len(before) - 1 : len(before) + 1], SHORT)
    assert missed >= 2


async def test_a_tick_is_skipped_while_the_job_of_an_earlier_one_is_unfinished(url: str) -> None:
    app = Penstock(url, **PATIENT)
    gate = asyncio.Event()

    @app.job("slow", every=SHORT)
    async def slow(ctx: JobContext) -> None:
        await gate.wait()

    async with app.running():
        [first] = await some_jobs(app, "slow", 1)
        await look_on(2 * SHORT)
        assert [job.id for job in await app.jobs()] == [first.id]
        # Nor by a process that has just started, and only looked now.
        other = Penstock(url, **PATIENT)
        other.job("slow", every=SHORT)(slow)
        async with other.running():
            await look_on(2 * SHORT)
            assert [job.id for job in await app.jobs()] == [first.id]
        gate.set()
        jobs = await in_a_row(app, "slow", 2, SHORT)  # from then on every tick
    [skipped] = gaps(jobs[:2], SHORT)
    assert skipped >= 3


async def test_ticks_of_a_blocked_lane_do_not_pile_up(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticker, "MAX_UNFINISHED", 3)
    app = Penstock(file, **PATIENT, lanes={"api": {"max_parallel": 5}})

    @app.job("once", every=SHORT, lane="api")
    async def once(ctx: JobContext) -> None: ...

    @app.job("often", every=SHORT, lane="api", overlap=True)
    async def often(ctx: JobContext) -> None: ...

    async with app:
        await app.control_lane("api", "pause")
        async with app.running():
            await some_jobs(app, "often", 3)
            await look_on(2 * SHORT)
            assert len(await app.jobs(kind="once")) == 1
            assert len(await app.jobs(kind="often")) == 3
            await app.control_lane("api", "resume")
            await some_jobs(app, "once", 2)
            await some_jobs(app, "often", 4)


async def test_jobs_that_somebody_enqueued_hold_up_no_tick(file: str) -> None:
    app = build(file, every=SHORT)
    async with app.running():
        by_hand = await app.enqueue("tidy", {"depth": 5}, delay=3600)
        now = await app.enqueue("tidy", {"depth": 7})
        assert (await app.wait(now.id, timeout=60)).result == [None, 7], "no tick"

        async def ticks() -> bool:
            return sum(job.key is not None for job in await app.jobs()) >= 2

        await until(ticks, "ticks")
        await app.cancel(by_hand.id)


async def test_a_tick_whose_key_somebody_has_taken_is_skipped_and_told_of_once(
    file: str, caplog: pytest.LogCaptureFixture
) -> None:
    day, app = last_tick_ago(60), build(file, every=SHORT)

    @app.job("daily", every=day)
    async def daily(ctx: JobContext, depth: int = 2) -> None: ...

    async with app:
        taken = tick_key(Every(day).after(time.time() - day))
        await app.enqueue("daily", {"depth": 7}, key=taken, delay=3600)
        async with app.running():
            await some_jobs(app, "tidy", 3)
            assert [job.payload for job in await app.jobs(kind="daily")] == [{"depth": 7}]
    said = [record.getMessage() for record in caplog.records if "daily" in record.getMessage()]
    assert len(said) == 1, caplog.text
    assert taken in said[0]


async def test_a_tick_that_failed_or_was_cancelled_is_not_enqueued_again(file: str) -> None:
    app = Penstock(file, **PATIENT)

    @app.job("broken", every=last_tick_ago(5), max_retries=0)
    async def broken(ctx: JobContext) -> None:
        raise ValueError

    @app.job("stopped", every=last_tick_ago(5))
    async def stopped(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    async with app.running():
        [first], [second] = await some_jobs(app, "broken", 1), await some_jobs(app, "stopped", 1)
        await app.wait(first.id, timeout=60)
        await app.cancel(second.id)
    async with app.running():
        await look_on(0.5)
        states = {job.id: job.state for job in await app.jobs()}
    assert states == {first.id: JobState.FAILED, second.id: JobState.CANCELLED}


async def test_only_a_process_that_works_on_a_kind_enqueues_it(file: str) -> None:
    app = build(file, every=SHORT)

    @app.job("sweep", every=SHORT)
    async def sweep(ctx: JobContext) -> None: ...

    async with app.running(kinds=["sw*"]):
        await some_jobs(app, "sweep", 3)
        assert await app.jobs(kind="tidy") == []
    async with app:
        assert (await app.enqueue("tidy")).key is None, "an app that is only open enqueues nothing"
        assert len(await app.jobs(kind="tidy")) == 1


async def test_a_stop_ends_the_ticks_before_the_running_jobs(file: str) -> None:
    app = Penstock(file, **PATIENT)
    gate = asyncio.Event()

    @app.job("slow", every=SHORT, overlap=True)
    async def slow(ctx: JobContext) -> None:
        await gate.wait()

    async with app:
        orchestrator = app.orchestrator()
        await orchestrator.start()
        await some_jobs(app, "slow", 2)
        stopping = asyncio.create_task(orchestrator.stop())
        await until(lambda: orchestrator.status["draining"], "the stop")
        await until(lambda: not _tickers(), "the ticker to end")
        jobs = await jobs_of(app, "slow")
        await look_on(2 * SHORT)
        assert [job.id for job in await jobs_of(app, "slow")] == [job.id for job in jobs]
        gate.set()
        await stopping
        assert not await app.jobs(states=[JobState.RUNNING])


def _tickers() -> list[str]:
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name == "penstock-ticker"]


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of this machine, which is the queue's where that is a file."""
    right, by = time.time, [0.0]
    monkeypatch.setattr(runtime, "now", lambda: right() + by[0])

    def set_to(seconds: float) -> None:
        by[0] = seconds

    return set_to


async def test_a_clock_that_goes_back_repeats_no_tick(
    file: str, shift: Callable[[float], None]
) -> None:
    app = build(file, every=SHORT, settings={"lease_seconds": 60.0})
    async with app.running():
        jobs = await some_jobs(app, "tidy", 4)
        shift(-3 * SHORT)
        later = await in_a_row(app, "tidy", len(jobs) + 2, SHORT)
    ticks = [tick(job) for job in later]
    assert len(set(ticks)) == len(ticks)


async def test_a_clock_that_was_an_hour_ahead_holds_up_no_tick(
    file: str, shift: Callable[[float], None]
) -> None:
    app = build(file, every=SHORT, settings={"lease_seconds": 10_000.0})
    async with app.running():
        now = tick((await some_jobs(app, "tidy", 2))[-1])
        shift(3600)

        async def far_ahead() -> bool:
            return tick((await jobs_of(app, "tidy"))[-1]) > now + 1800

        await until(far_ahead, "a tick of the wrong hour")
        shift(0)

        async def resumed() -> bool:
            right = [job for job in await jobs_of(app, "tidy") if tick(job) < now + 1800]
            return tick(right[-1]) > now + 2 * SHORT

        await until(resumed, "ticks of the right hour")


async def test_ticks_go_on_when_the_queue_is_back(tmp_path: Path) -> None:
    with Proxy(BACKENDS["redis"].url(tmp_path)) as proxy:
        app = build(proxy.url, every=SHORT)
        async with app.running():
            jobs = await some_jobs(app, "tidy", 2)
            proxy.leave()
            await look_on(2 * SHORT)
            proxy.come_back()

            async def more() -> bool:
                return len(await jobs_of(app, "tidy")) >= len(jobs) + 2

            await until(more, "more ticks")
            jobs = await jobs_of(app, "tidy")
    assert len({tick(job) for job in jobs}) == len(jobs)
    assert len(gaps(jobs, SHORT)) <= 4, "what nobody could enqueue is missed, not made up at once"


async def test_retention_too_short_to_tell_ticks_apart_is_refused(file: str) -> None:
    app = build(file, every=SHORT, settings={"retention_seconds": 0.5})
    with pytest.raises(ConfigError, match="needs retention_seconds of 1 or more"):
        async with app.running():
            pass
    assert _tickers() == []
