"""Whatever a handler raises, its job gets an outcome and the worker lives on."""

from pathlib import Path

import pytest

from penstock import JobContext, JobState, Penstock


class Odd(BaseException):
    """Not an Exception, as some libraries' signals are."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message today")


class Misleading(Exception):
    @property
    def retryable(self) -> bool:
        raise RuntimeError("who knows")


RAISED = {
    "a base exception": Odd("odd"),
    "system exit": SystemExit(3),
    "an error without a message": Unprintable(),
    "an error that cannot be asked": Misleading("x"),
    "a message that is no valid text": ValueError("\udcff"),
    "a message with a zero byte": ValueError("a\0b"),
    "stop iteration": StopAsyncIteration(),
    "a group": ExceptionGroup("several", [ValueError("x"), KeyError("y")]),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("how", ["async", "sync"])
@pytest.mark.parametrize("name", RAISED)
async def test_whatever_is_raised_the_job_fails_and_the_worker_lives_on(
    tmp_path: Path, name: str, how: str
) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False, max_workers=1)

    @app.job("bad.async", max_retries=0)
    async def bad(ctx: JobContext) -> None:
        raise RAISED[name]

    @app.job("bad.sync", max_retries=0)
    def bad_sync(ctx: JobContext) -> None:
        raise RAISED[name]

    @app.job("good")
    async def good(ctx: JobContext) -> str:
        return "done"

    async with app:
        job = await app.enqueue(f"bad.{how}", task="paper")
        after = await app.enqueue("good")
        orchestrator = app.orchestrator()
        await orchestrator.start()
        try:
            assert (await app.wait(after.id, timeout=2)).result == "done"
            dead = await app.wait(job.id, timeout=2)
        finally:
            await orchestrator.stop(grace=0.1)
        assert dead.state is JobState.FAILED
        assert dead.error is not None
        assert dead.error.type == type(RAISED[name]).__name__
        assert [record.outcome for record in dead.history] == ["failed"]
        assert (await app.changes("paper"))[-1].what == "failed"
