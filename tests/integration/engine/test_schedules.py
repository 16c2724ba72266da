"""Schedules that are rows, while worker processes run."""

import asyncio
import logging
from pathlib import Path

import pytest

from penstock import JobContext, Penstock
from penstock.errors import ScheduleChanged, ScheduleInCode, ScheduleNotFound, ValidationError
from penstock.model.tick import tick_of
from tests.conformance.support import BACKENDS
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import FAST

PATIENT = {**FAST, "lease_seconds": 60.0}
"""A pause of the machine is no death."""


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return BACKENDS[request.param].url(tmp_path)


def build(url: str) -> Penstock:
    app = Penstock(url, **PATIENT)

    @app.job("report")
    async def report(ctx: JobContext, days: int) -> tuple[float | None, int]:
        return ctx.tick, days

    return app


def build_other(url: str) -> Penstock:
    """An app that handles another kind, and ticks all the same."""
    app = Penstock(url, **PATIENT)

    @app.job("other", every=3600)
    async def other(ctx: JobContext) -> None: ...

    return app


async def test_a_schedule_made_while_all_runs_has_one_job_a_tick(url: str) -> None:
    app, apps = build(url), [build(url), build_other(url), build_other(url)]
    async with app, apps[0].running(), apps[1].running(), apps[2].running():
        made = await app.schedules.set("often", "report", {"days": 2}, every=1, overlap=True)
        assert made.next_at is not None

        async def three() -> bool:
            return len(await app.jobs(kind="report", states=["completed"])) >= 3

        await until(three, "three ticks")
        assert (await app.schedules.pause("often")).paused
        await app.drain(timeout=PATIENCE)
        jobs = await app.jobs(kind="report")
        ticks = [tick_of(job.id, job.kind, job.key, job.tenant) for job in jobs]
        assert [job.result for job in jobs] == [[tick, 2] for tick in ticks]
        assert len(set(ticks)) == len(jobs), "each is one job"
        assert all(tick is not None and tick >= made.next_at for tick in ticks)

        job = await app.schedules.run_now("often")
        assert await app.result(job.id, PATIENCE) == [None, 2]
        await app.schedules.remove("often")


async def test_those_in_the_code_are_shown_beside_and_not_changed(tmp_path: Path) -> None:
    app = build_other(f"sqlite:///{tmp_path}/jobs.db")
    async with app:
        await app.schedules.set("nightly", "other", cron="0 3 * * *")
        row, code = await app.schedules.list()
        assert (row.name, row.source, row.schedule) == ("nightly", "row", "0 3 * * * (UTC)")
        assert (code.name, code.source, code.schedule) == ("other", "code", "every 3600 s")
        assert await app.schedules.get("other") == code
        change = app.schedules
        for refused in (change.pause, change.resume, change.run_now, change.remove):
            with pytest.raises(ScheduleInCode, match="change it there"):
                await refused("other")
        with pytest.raises(ScheduleInCode):
            await change.set("other", "other", every=60)
        assert (await change.set("other", "other", every=60, tenant="acme")).tenant == "acme"


async def test_a_wrong_schedule_is_refused_and_an_unknown_kind_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = build(f"sqlite:///{tmp_path}/jobs.db")
    async with app:
        with pytest.raises(ValidationError, match="Bad"):
            await app.schedules.set("x", "report", {"days": 1}, cron="99 * * * *")
        with pytest.raises(ValidationError, match="days"):
            await app.schedules.set("x", "report", every=60)
        with pytest.raises(ValidationError, match="printable"):
            await app.schedules.set("x\n", "report", {"days": 1}, every=60)
        assert [one.source for one in await app.schedules.list()] == []
        with caplog.at_level(logging.WARNING):
            await app.schedules.set("x", "reports", every=60)
        assert "did you mean 'report'?" in caplog.text
        job = await app.schedules.run_now("x")
        assert (await app.get(job.id)).state == "queued"


async def test_changes_at_the_same_time_are_all_done(tmp_path: Path) -> None:
    app = build(f"sqlite:///{tmp_path}/jobs.db")
    async with app:
        names = [f"n{n}" for n in range(3)] * 3
        same = [app.schedules.set(name, "report", {"days": 1}, every=60) for name in names]
        await asyncio.gather(*same)
        assert [one.name for one in await app.schedules.list()] == ["n0", "n1", "n2"]
        await asyncio.gather(app.schedules.pause("n0"), app.schedules.pause("n0"))
        with pytest.raises(ScheduleNotFound, match="no schedule 'n9'"):
            await app.schedules.get("n9")
    assert "try again" in str(ScheduleChanged("n0"))


def test_schedules_of_an_app_whose_methods_block(tmp_path: Path) -> None:
    with build(f"sqlite:///{tmp_path}/jobs.db").sync() as q:
        made = q.schedules.set("nightly", "report", {"days": 1}, every=60)
        assert q.schedules.get("nightly") == made
        assert q.schedules.pause("nightly").paused
        assert not q.schedules.resume("nightly").paused
        assert q.schedules.run_now("nightly").payload == {"days": 1}
        q.schedules.remove("nightly")
        assert list(q.schedules.list()) == []
