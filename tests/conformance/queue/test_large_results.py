"""Results of steps over 1 MiB: in the blob store, for as long as their job is there."""

import os
from pathlib import Path
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.errors import BlobMissing
from penstock.model.step import STEP_RESULT_LIMIT
from penstock.ports.queue import JobQueue
from tests.conformance.queue.test_events import running
from tests.conformance.support import KIND, LONG
from tests.support.waiting import PATIENCE

LARGE = "ä" * STEP_RESULT_LIMIT
Calls = list[str]


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def app(queue: JobQueue, calls: Calls, folder: Path) -> Penstock:
    return reading(queue, calls, blobs=str(folder))


def reading(queue: JobQueue, calls: Calls, **settings: Any) -> Penstock:
    """An app with a job of which the first run fails once it has read something large."""
    times: dict[str, Any] = {"max_retries": 1, "retry_base_seconds": 0.01, "lease_seconds": LONG}
    app = Penstock("sqlite:///not-used.db", **times, **settings).on_queue(queue)

    async def read() -> str:
        calls.append("read")
        return LARGE

    @app.job(KIND)
    async def handler(ctx: JobContext, fails: bool = False) -> int:
        text = await ctx.step("read", read)
        if ctx.attempt == 1 or fails:
            raise ConnectionError("it is recorded")
        assert text == LARGE
        return int(await ctx.step("count", lambda: len(text)))

    return app


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def done(app: Penstock) -> Job:
    async with running(app):
        job = await app.enqueue(KIND)
        assert await app.result(job.id, timeout=PATIENCE) == len(LARGE)
        return job


async def test_a_rerun_takes_a_large_result_from_the_blob_store(
    app: Penstock, calls: Calls, folder: Path
) -> None:
    job = await done(app)

    assert calls == ["read"]
    (blob,) = stored(folder)
    assert job.id in blob.name
    (row, _) = await app.queue.steps(job.id)
    assert len(row.result or "") < 200  # no more than where it is
    (step, _) = await app.steps(job.id)
    assert step.result == LARGE


async def test_without_a_blob_store_the_refusal_names_the_setting(
    queue: JobQueue, calls: Calls
) -> None:
    app = reading(queue, calls)
    if app.queue.url.startswith("sqlite"):
        await done(app)  # beside the file
        assert len(stored(Path(app.queue.url.removeprefix("sqlite:///") + "-blobs"))) == 1
        return
    async with running(app):
        job = await app.wait((await app.enqueue(KIND)).id, timeout=PATIENCE)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error["type"] == "ResultTooLarge"
    assert "`blobs`" in job.error["message"]
    assert "step 'read'" in job.error["message"]


async def test_a_rerun_from_a_step_has_large_results_of_its_own(
    app: Penstock, calls: Calls, folder: Path
) -> None:
    old = await done(app)
    (before,) = stored(folder)
    async with running(app):
        again = await app.rerun(old.id, from_step="count")
        before.unlink()  # as with the old job

        assert await app.result(again.id, timeout=PATIENCE) == len(LARGE)

    assert calls == ["read"]
    assert [again.id in blob.name for blob in stored(folder)] == [True]


async def test_what_is_missing_is_told_and_not_done_again(
    app: Penstock, calls: Calls, folder: Path
) -> None:
    job = await done(app)
    for blob in stored(folder):
        blob.unlink()

    with pytest.raises(BlobMissing, match="step 'read'"):
        await app.steps(job.id)


@pytest.mark.parametrize("age", ["old", "new"])
async def test_large_results_go_with_their_job(app: Penstock, folder: Path, age: str) -> None:
    kept = await done(app)
    async with running(app):
        gone = await app.wait((await app.enqueue(KIND, {"fails": True})).id, timeout=PATIENCE)
    await app.discard(job_id=gone.id)
    blobs = stored(folder)
    assert len(blobs) == 2
    if age == "old":
        for blob in blobs:
            os.utime(blob, (0, 0))

    results = app.step_results
    assert results is not None
    await results.sweep()

    left = [job.id for job in (gone, kept) for blob in stored(folder) if job.id in blob.name]
    assert left == ([kept.id] if age == "old" else [gone.id, kept.id])
