"""One seam for time and chance: nothing goes past it, and what replaces it reaches everybody."""

import ast
import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import JobContext, Penstock, runtime

SRC = Path(penstock.__file__).parent
BEHIND_IT = [
    *(SRC / name for name in ("engine", "lanes", "outbound", "model", "text")),
    *(SRC / "adapters" / name for name in ("sqlite", "sql")),
    *(SRC / "adapters").glob("*.py"),
    *(SRC / name for name in ("app.py", "aio.py")),
]
MODULES = {"time", "random", "secrets", "uuid", "fcntl", "queue", "multiprocessing", "sched"}
"""Of which nothing but types may be imported."""
CALLS = {
    *(f"threading.{name}" for name in ("Thread", "Timer", "Event", "Condition", "Barrier")),
    *(f"os.{name}" for name in ("urandom", "getpid", "getrandom", "fork")),
    *("asyncio.to_thread", "socket.gethostname", "Inotify.open", "Random", "SystemRandom"),
    *("ThreadPoolExecutor", "ProcessPoolExecutor"),
    *(f"{name}.{now}" for name in ("datetime", "date") for now in ("now", "utcnow", "today")),
}
TYPES = {"UUID"}


def files() -> Iterator[Path]:
    for place in BEHIND_IT:
        yield from [place] if place.suffix else place.rglob("*.py")


def past_it(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module in MODULES:
                    yield from (name.name for name in names if name.name not in TYPES)
                if module == "penstock.runtime":
                    yield from (f"runtime.{name.name}" for name in names)
            case ast.Attribute() | ast.Name() if ast.unparse(node) in CALLS:
                yield ast.unparse(node)


@pytest.mark.parametrize("file", sorted(files()), ids=lambda file: str(file.relative_to(SRC)))
def test_no_clock_thread_lock_or_random_number_but_through_the_seam(file: Path) -> None:
    assert list(past_it(ast.parse(file.read_text()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import time",
        "from time import monotonic",
        "import random as chance",
        "threading.Thread(target=print)",
        "await asyncio.to_thread(print)",
        "datetime.now(UTC)",
        "from penstock.runtime import now",
    ],
)
def test_what_goes_past_it_is_seen(code: str) -> None:
    assert list(past_it(ast.parse(f"async def one():\n {code}")))


def test_what_is_replaced_is_restored() -> None:
    before = runtime.now
    with runtime.replaced(now=lambda: 5.0):
        assert runtime.now() == 5.0
    assert runtime.now is before
    with pytest.raises(KeyError), runtime.replaced(no_such_function=print):
        pass


class InlineBatches:
    """Performs what it is given in the event loop, a turn later."""

    waiting = 0

    def __init__(self, name: str, perform: Any, end: Callable[[], None], together: int) -> None:
        self._perform = perform
        self._end = end

    def put(self, item: Any) -> None:
        asyncio.get_running_loop().call_soon(self._perform, [item])

    def close(self) -> None:
        self._end()


class InlineTicking:
    """Takes its steps in the event loop."""

    def __init__(
        self, name: str, step: Callable[[], float | None], pause: float, alarm: Any = None
    ) -> None:
        self._step = step
        self._timer = asyncio.get_running_loop().call_later(pause, self._tick)

    def _tick(self) -> None:
        if (pause := self._step()) is not None:
            self._timer = asyncio.get_running_loop().call_later(pause, self._tick)

    async def stop(self) -> None:
        self._timer.cancel()


async def inline(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def call_soon(target: Callable[[], None], name: str) -> None:
    asyncio.get_running_loop().call_soon(target)


async def test_engine_and_sqlite_run_in_one_thread_by_a_clock_of_their_own(tmp_path: Path) -> None:
    threads: set[int] = set()
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", lease_seconds=0.3)

    @app.job("in_loop")
    async def in_loop(ctx: JobContext) -> list[Any]:
        threads.add(threading.get_ident())
        children = [await ctx.enqueue("in_thread") for _ in range(3)]
        return [child.result async for child in ctx.finished(children)]

    @app.job("in_thread")
    def in_thread(ctx: JobContext) -> str:
        threads.add(threading.get_ident())
        return ctx.job.id

    offset = 1e9
    before = threading.active_count()
    with runtime.replaced(
        now=lambda: asyncio.get_running_loop().time() + offset,
        monotonic=lambda: asyncio.get_running_loop().time(),
        start_batches=InlineBatches,
        start_ticking=InlineTicking,
        start_thread=call_soon,
        in_thread=inline,
        open_inotify=lambda: None,
    ):
        async with app, app.running():
            job = await app.enqueue("in_loop")
            done = await app.wait(job.id, timeout=30)
            assert threading.active_count() == before
    assert threads == {threading.get_ident()}
    assert len(done.result) == 3
    assert done.finished_at is not None
    assert offset < done.enqueued_at <= done.finished_at < offset + 1e9
