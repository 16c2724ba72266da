"""Calls of an app's blocking methods that type checkers must accept, and calls they must refuse."""

from contextlib import AbstractContextManager
from typing import assert_type

from penstock import Job, JobContext, JobOrchestrator, Penstock
from penstock.types import JobRef, SyncPenstock

app = Penstock("sqlite:///types.db")


@app.job
async def count(ctx: JobContext, words: list[str]) -> int:
    return len(words)


def accepted() -> None:
    with app.sync() as q:
        assert_type(q, SyncPenstock)
        job = q.enqueue("count", {"words": []}, key="a", priority="high")
        assert_type(job, Job)
        assert_type(q.enqueue_many("count", [{"words": []}]), list[Job])
        assert_type(q.wait(job.id, timeout=3), Job)
        assert_type(q.dead_letters(limit=3), list[Job])
        assert_type(q.running(kinds=["count"]), AbstractContextManager[JobOrchestrator])
        ref = q.run(count.enqueue(["a"]))
        assert_type(ref, JobRef[int])
        assert_type(q.run(ref.result()), int)
        for event in q.follow(job.id):
            print(event.position)


def refused(q: SyncPenstock) -> None:
    q.enqueue(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    q.enqueue("count", priority="urgent")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    q.wait()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    q.get("a", "b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
