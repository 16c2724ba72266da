"""The app for programs that do not await."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import flask
import pytest

from penstock import JobContext, Penstock
from penstock.engine.orchestrator import JobOrchestrator
from penstock.errors import JobNotFound, QueueError, WaitTimeout
from penstock.runtime.calling_thread import calling_thread
from penstock.types import SyncPenstock
from tests.conformance.support import BACKENDS


@pytest.fixture
def app(tmp_path: Path) -> Penstock:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False)

    @app.job
    async def double(ctx: JobContext, n: int) -> int:
        await ctx.emit("working")
        return 2 * n

    return app


def sync_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "penstock-sync"]


def test_jobs_are_enqueued_run_and_waited_for(app: Penstock) -> None:
    with app.sync() as q:
        jobs = q.enqueue_many("double", [{"n": n} for n in range(5)], keys=list("abcde"))
        assert q.enqueue("double", {"n": 0}, key="a").id == jobs[0].id
        with pytest.raises(WaitTimeout):
            q.wait(jobs[0].id, timeout=0.01)
        with q.running(kinds=["double"]) as orchestrator:
            assert [q.result(job.id, timeout=250) for job in jobs] == [0, 2, 4, 6, 8]
            q.drain(timeout=250)
            assert orchestrator.status["busy"] == 0
        assert [event.kind for event in q.follow(jobs[1].id)] == ["emitted", "end"]
        first = next(iter(q.follow(jobs[2].id)))
        assert first.data == "working", "and the rest of that stream is not wanted"
        with pytest.raises(JobNotFound):
            q.get("0" * 32)
    assert sync_threads() == []


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_every_queue_can_be_opened_in_the_thread(name: str, tmp_path: Path) -> None:
    backend = BACKENDS[name]
    url = backend.url(tmp_path)
    app = Penstock(url)

    @app.job
    def double(ctx: JobContext, n: int) -> int:
        return 2 * n

    for n in range(2):  # closed, and opened again in another loop
        with app.sync() as q, q.running():
            job = q.enqueue("double", {"n": n})
            assert q.result(job.id, timeout=250) == 2 * n
            assert [event.kind for event in q.follow(job.id)] == ["end"]
    with app.sync():
        pass  # nobody waits here
    backend.give_back(url)


def test_a_stream_that_outlives_the_app_does_not_open_it_again(app: Penstock) -> None:
    with app.sync() as q, q.running():
        job = q.enqueue("double", {"n": 1})
        q.result(job.id, timeout=250)
        read, left = q.follow(job.id), q.follow(job.id)
        assert next(read).kind == next(left).kind == "emitted"
    with pytest.raises(QueueError, match="the app was closed before all was read"):
        next(read)
    del left
    assert sync_threads() == []


def test_an_error_within_a_block_leaves_the_workers_stopped(app: Penstock) -> None:
    with app.sync() as q, pytest.raises(ZeroDivisionError), q.running():
        _ = 1 / 0
    assert sync_threads() == []


def test_ctrl_c_says_what_it_waits_for_and_another_returns_it_to_the_queue(
    app: Penstock, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()

    @app.job
    async def endless(ctx: JobContext) -> None:
        begun.set()
        await asyncio.sleep(1000)

    def interrupt_again(orchestrator: JobOrchestrator) -> None:
        while not orchestrator.status["draining"]:
            time.sleep(0.01)
        os.kill(os.getpid(), 2)

    def work(q: SyncPenstock) -> None:
        with q.running() as orchestrator:
            assert begun.wait(250)
            threading.Thread(target=interrupt_again, args=[orchestrator]).start()
            os.kill(os.getpid(), 2)

    with app.sync() as q:
        job = q.enqueue("endless")
        with pytest.raises(KeyboardInterrupt):
            work(q)
        assert q.get(job.id).state == "queued"
        assert q.processes() == []
    assert "for running jobs (1); Ctrl-C again returns them to the queue" in caplog.text


async def named(app: Penstock) -> str:
    return app.lanes.__class__.__name__


def test_typed_handles_and_anything_else_are_awaited_by_run(app: Penstock) -> None:
    @app.job
    def add(ctx: JobContext, a: int, b: int) -> int:
        return a + b

    with app.sync() as q, q.running():
        ref = q.run(add.enqueue(1, b=2))
        assert q.run(ref.result(timeout=250)) == 3
        assert q.run(named(app)) == "LaneRegistry"


def public_methods(owner: type) -> dict[str, Callable[..., Any]]:
    return {
        name: one
        for name, one in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_method_that_is_awaited_has_one_that_blocks() -> None:
    needed = {
        name: one
        for name, one in public_methods(Penstock).items()
        if inspect.iscoroutinefunction(one)
        or inspect.isasyncgenfunction(one)
        or "AsyncIterator" in str(one.__annotations__.get("return"))
    }
    blocking = public_methods(SyncPenstock)
    assert needed.keys() == blocking.keys() - {"run", "close"}
    for name, one in needed.items():
        assert inspect.signature(blocking[name]) == inspect.signature(one)
        assert blocking[name].__doc__ == one.__doc__


def test_threads_share_one_loop(app: Penstock) -> None:
    """Whoever comes first opens it, and whoever leaves last closes it."""

    def enqueue(n: int) -> str:
        with app.sync() as q:
            return q.enqueue("double", {"n": n % 10}, key=str(n % 10)).id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(enqueue, range(80)))) == 10
    assert sync_threads() == []
    with app.sync() as q, ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(enqueue, range(80)))) == 10
        assert sync_threads() == ["penstock-sync"]
        assert len(q.jobs()) == 10


def test_without_a_block_the_first_call_opens_it(app: Penstock) -> None:
    q = app.sync()
    assert q is app.sync()
    job = q.enqueue("double", {"n": 1})
    assert sync_threads() == ["penstock-sync"]
    q.close()
    q.close()
    assert sync_threads() == []
    assert q.get(job.id).state == "queued", "the next call opens it again"
    with q:
        pass
    assert sync_threads() == []


def test_a_queue_that_cannot_be_opened_is_an_error_each_time(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_text("this is no database " * 100)
    q = Penstock(f"sqlite:///{tmp_path}/jobs.db").sync()
    for _ in range(2):
        with pytest.raises(QueueError, match="database"):
            q.jobs()
        with pytest.raises(QueueError, match="database"), q:
            pass
    assert sync_threads() == []


async def test_in_a_thread_with_a_running_loop_it_blocks_as_in_a_notebook(app: Penstock) -> None:
    with app.sync() as q:
        assert q.get(q.enqueue("double", {"n": 1}).id).state == "queued"
        with pytest.raises(QueueError, match="open in another event loop"):
            async with app:
                pass


async def test_where_the_app_is_open_calls_are_done_there(app: Penstock) -> None:
    """As in a view of a web application that a thread runs."""
    async with app.running():
        q = app.sync()
        with pytest.raises(QueueError, match="await the app's own methods here"):
            q.enqueue("double", {"n": 1})
        job = await asyncio.to_thread(q.enqueue, "double", {"n": 1})
        assert await asyncio.to_thread(q.result, job.id, 250) == 2
        assert sync_threads() == []
        with pytest.raises(QueueError, match="await"), q:
            pass


async def test_an_app_that_is_open_in_another_loop_is_not_awaited_in_this_one(
    app: Penstock,
) -> None:
    with app.sync() as q:
        job = await asyncio.to_thread(q.enqueue, "double", {"n": 4})
        for ask in (app.enqueue("double", {"n": 4}), app.get(job.id), app.result(job.id)):
            with pytest.raises(QueueError, match=r"await it there, or call app\.sync\(\)"):
                await ask


async def test_a_sync_handler_may_use_it(app: Penstock) -> None:
    @app.job
    def outer(ctx: JobContext) -> int:
        with app.sync() as q:
            result: int = q.result(q.enqueue("double", {"n": 4}).id, 250)
            return result

    async with app.running():
        assert await app.result((await app.enqueue("outer")).id, 250) == 8


def test_a_wait_whose_app_is_closed_meanwhile_is_told(app: Penstock) -> None:
    q = app.sync()
    job = q.enqueue("double", {"n": 1})
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        await app.wait(job.id)

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(q.run, wait())
        assert begun.wait(60)
        q.close()
        with pytest.raises(QueueError):
            waiting.result(60)


def test_an_interrupted_wait_is_cancelled_in_the_loop(app: Penstock) -> None:
    ended: list[str] = []

    async def wait_for_ever() -> None:
        try:
            os.kill(os.getpid(), 2)
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with app.sync() as q:
        with pytest.raises(KeyboardInterrupt):
            q.run(wait_for_ever())
        assert q.jobs() == []
    assert ended == ["cancelled"]


def test_an_interrupt_within_what_the_thread_does_for_the_loop_leaves_the_app_open(
    app: Penstock,
) -> None:
    async def statement() -> None:
        thread = calling_thread()
        assert thread is not None
        await thread.call(lambda: os.kill(os.getpid(), 2))

    async def statements() -> None:
        """The second is asked for when nobody waits any more."""
        async with asyncio.TaskGroup() as both:
            both.create_task(statement())
            both.create_task(statement())

    with app.sync() as q:
        with pytest.raises(KeyboardInterrupt):
            q.run(statements())
        assert q.jobs() == []


def in_child(work: Callable[[], str]) -> str:
    """What a forked child says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def test_a_forked_child_opens_the_app_for_itself_or_is_told_why_not(app: Penstock) -> None:
    q = app.sync()

    def enqueue() -> str:
        with q:
            return q.enqueue("double", {"n": 7}, key="child").id

    async def opened() -> str:
        async with app:
            return "open"

    before = in_child(enqueue)
    assert q.get(before).payload == {"n": 7}
    assert in_child(enqueue).startswith("QueueError: this process was forked from one in which")
    assert in_child(lambda: asyncio.run(opened())).startswith("QueueError: this process was forked")

    def close() -> str:
        q.close()
        return "closed"

    assert in_child(close) == "closed", "and what is the parent's is left alone"
    assert q.get(before).id == before, "the parent goes on"
    q.close()
    assert in_child(enqueue) == before
    assert q.get(before).id == before
    q.close()


SCRIPT = """
import sys
from penstock import Penstock

q = Penstock(sys.argv[1], durable=False).sync()
print(q.enqueue("double", {"n": 1}).id)
"""


def test_a_script_that_closes_nothing_ends_quietly(app: Penstock) -> None:
    url = app.config.queue
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", SCRIPT, url]
    begun = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert (ended.returncode, ended.stderr) == (0, ""), time.monotonic() - begun
    with app.sync() as q:
        assert q.get(ended.stdout.strip()).state == "queued"


def test_a_flask_view_enqueues_and_waits(app: Penstock) -> None:
    site = flask.Flask("shop")
    q = app.sync()

    @site.post("/double/<int:n>")
    def double(n: int) -> dict[str, Any]:
        job = q.enqueue("double", {"n": n})
        return {"id": job.id, "result": q.result(job.id, timeout=250)}

    with q, q.running():
        told = site.test_client().post("/double/21").get_json()
        assert told["result"] == 42
