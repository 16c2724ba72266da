"""What a handler tells while it runs: last progress and log lines are there when it has ended."""

import asyncio
import logging
from typing import Any

import pytest

from penstock import JobContext, JobState
from tests.support.handler_app import HandlerApp
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0


async def test_last_progress_message_before_the_end_is_stored(farm: Farm) -> None:
    runner = HandlerApp(farm, progress_seconds=3600)

    async def work(ctx: JobContext) -> None:
        await ctx.progress(0.0, "begun")

        async def stored() -> bool:
            return (await runner.app.get(ctx.job.id)).message == "begun"

        await until(stored, "the first to be sent, and so no other for an hour")
        for n in range(1, 10):
            await ctx.progress(n / 10, f"{n}/10 pages")
        await ctx.progress(1.0, "all 10 pages done")

    done = await runner.run(work)
    assert (done.state, done.message) == (JobState.COMPLETED, "all 10 pages done")


async def test_log_lines_are_kept_with_the_job_and_told_to_the_process(
    runner: HandlerApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # what is kept does not depend on it

    async def work(ctx: JobContext) -> None:
        ctx.log("%d pages", 3)
        ctx.log.debug("not kept")
        ctx.log.warning("page %s is empty", "two")
        try:
            raise KeyError("gone")
        except KeyError:
            ctx.log.exception("skipped")
        ctx.log.info("%d %d", "does not fit")
        ctx.log.info("y" * 5000)
        raise ValueError("at last")

    done = await runner.run(work)
    assert done.state is JobState.FAILED
    told = [(line.level, line.message) for line in done.lines]
    assert told[:4] == [
        ("info", "3 pages"),
        ("warning", "page two is empty"),
        ("error", "skipped: KeyError: 'gone'"),
        ("info", "%d %d ('does not fit',)"),
    ]
    assert told[4][1].endswith("... (5,000 characters)")
    assert {line.attempt for line in done.lines} == {1}
    assert sorted(line.at for line in done.lines) == [line.at for line in done.lines]
    mine = [record for record in caplog.records if record.name == "penstock.job"]
    assert [record.getMessage() for record in mine] == ["page two is empty", "skipped"]
    assert {record.__dict__["job"] for record in mine} == {done.id}


async def test_sync_handler_and_every_run_of_a_job_can_log(farm: Farm) -> None:
    app = farm.bare(retry_base_seconds=0.01)

    @app.job("work", max_retries=1)
    def work(ctx: JobContext) -> None:
        ctx.log("in a thread")
        raise ValueError("no")

    async with app, app.running():
        job = await app.enqueue("work")
        done = await app.wait(job.id, timeout=SOON)
    assert [(line.attempt, line.message) for line in done.lines] == [
        (1, "in a thread"),
        (2, "in a thread"),
    ]


async def test_task_group_of_a_handler_is_stored_with_its_members(runner: HandlerApp) -> None:
    async def child() -> None:
        raise ValueError("inner problem")

    async def work(ctx: JobContext) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    done = await runner.run(work)
    assert done.error is not None
    assert [one["message"] for one in done.error.members] == ["inner problem"]
    assert "test_job_log.py" in done.error.members[0]["place"]
    assert "ValueError: inner problem" in done.history[0].traceback
