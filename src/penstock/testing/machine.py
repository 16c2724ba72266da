"""A simulated computer: its clock, threads, locks and wake-ups, and a disk with one queue."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock import runtime
from penstock.adapters.listener import Listener
from penstock.adapters.sqlite.queue import SqliteQueue
from penstock.adapters.sqlite.schema import migrate
from penstock.engine import loop_monitor
from penstock.model import ids
from penstock.ports.queue import Topic
from penstock.testing.loop import SimulatedLoop, SimulatedProcess, current
from penstock.testing.rows import RowChange, tables, watch

T = TypeVar("T")
Rows = dict[str, list[tuple[Any, ...]]]
"""Tables, with all that is in them."""
EPOCH = 1_800_000_000.0
"""What the clocks show when a simulation begins."""
NEVER_SECONDS = 1e6
"""Between two looks at how late the event loop is: nothing blocks the loop of a simulation."""
COMMIT_SECONDS = (0.0002, 0.004)
"""How long a transaction takes."""


class Machine:
    """One computer: its clock, its disk with one queue, and the processes on it."""

    def __init__(
        self,
        seed: int,
        folder: Path,
        died: Callable[[SimulatedProcess], None] = lambda _: None,
        *,
        server: bool = False,
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 (it is to be predictable)
        self.folder = folder
        self._died = died
        self.server = server
        """The queue is on another computer than the processes."""
        self._asking = True
        self.loop = SimulatedLoop(self.chance, self._bury)  # type: ignore[abstract]
        self.processes: list[SimulatedProcess] = []
        self.wakeups: list[SimulatedWakeups] = []
        self.clock_jump = 0.0
        """How far the clock of the computer was set ahead."""
        self.slow_until = 0.0
        """The disk takes its time until then."""
        self.full_until = 0.0
        """The disk is full until then."""
        self.wakeups_lost = 0.0
        """The share of wake-ups that get lost."""
        self.connection = _take_connection()
        self.connection.is_full = self.disk_is_full

    def process(self, name: str) -> SimulatedProcess:
        made = SimulatedProcess(name, 100 + len(self.processes))
        self.processes.append(made)
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have all code in this thread run on this computer."""
        last, ids._last = ids._last, 0
        pause, loop_monitor.PAUSE = loop_monitor.PAUSE, NEVER_SECONDS
        functions = {
            "now": self.now,
            "monotonic": self.monotonic,
            "sleep": _never,
            "uniform": self.chance.uniform,
            "random_bytes": self.chance.randbytes,
            "process_id": lambda: current.get().pid,
            "host_name": lambda: current.get().host,
            "open_inotify": _never,
            "in_thread": self.in_thread,
            "thread_event": SimulatedEvent,
            "thread_pool": _never,
            "start_ticking": SimulatedTicking,
            "start_batches": self.start_batches,
            "start_thread": self.start_thread,
            "try_lock": self.try_lock,
        }
        with runtime.replaced(**functions):
            try:
                yield
            finally:
                ids._last = last
                loop_monitor.PAUSE = pause

    def close(self) -> None:
        """Let go of the files and the database; nothing of a process runs any more."""
        for process in self.processes:
            process.alive = False
        self.loop.close()
        for process in self.processes:
            for fd in _still_open(process):
                os.close(fd)
            process.locks.clear()
        _put_back(self.connection)

    # The seam: see penstock.runtime.

    def now(self) -> float:
        if self.server and self._asking:
            return EPOCH + self.loop.clock + current.get().clock_offset
        return self.server_time()

    def server_time(self) -> float:
        """By the clock of the computer that the queue is on."""
        return EPOCH + self.loop.clock + self.clock_jump

    @contextmanager
    def at_server(self) -> Iterator[None]:
        """What is done here goes by the clock of the server."""
        self._asking = False
        try:
            yield
        finally:
            self._asking = True

    def monotonic(self) -> float:
        return self.loop.clock

    async def in_thread(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        await asyncio.sleep(self.chance.uniform(0.0, 0.005))
        return call(*args, **named)

    def start_thread(self, target: Callable[[], None], name: str) -> None:
        self.loop.call_later(self.chance.uniform(0.0, 0.02), target)

    def start_batches(
        self,
        name: str,
        perform: Callable[[list[T]], None],
        end: Callable[[], None],
        together: int,
    ) -> SimulatedBatches[T]:
        return SimulatedBatches(self, perform, end, together)

    def try_lock(self, fd: int) -> bool:
        if not _try_lock(fd):
            return False
        current.get().locks.append((fd, os.fstat(fd).st_ino))
        return True

    def commit_seconds(self) -> float:
        if self.loop.clock < self.slow_until:
            return self.chance.uniform(0.05, 1.5)
        return self.chance.uniform(*COMMIT_SECONDS)

    def disk_is_full(self) -> bool:
        return self.loop.clock < self.full_until and current.get().faulty

    def _bury(self, process: SimulatedProcess) -> None:
        for fd in _still_open(process):
            # Not closed yet: its `finally` blocks close it when the simulation ends, and would
            # close whatever has that number by then.
            fcntl.flock(fd, fcntl.LOCK_UN)
        self.wakeups = [one for one in self.wakeups if one.process is not process]
        self._died(process)


_try_lock = runtime.try_lock


def _still_open(process: SimulatedProcess) -> Iterator[int]:
    """The files that a process has locked, but for those that it has closed itself: what has
    their number by now may be another file."""
    for fd, inode in process.locks:
        try:
            found = os.fstat(fd).st_ino
        except OSError:
            continue
        if found == inode:
            yield fd


def _never(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("a simulated process cannot do this")


class SharedConnection(sqlite3.Connection):
    """The one connection of all processes: each transaction is over before another begins."""

    def __init__(self) -> None:
        # Of all threads, one at a time: a test may drive a computer from several.
        super().__init__(
            ":memory:", isolation_level=None, cached_statements=2000, check_same_thread=False
        )
        self.is_full: Callable[[], bool] = lambda: False
        """Whether the disk takes no more of whoever writes now."""
        self.committed: Callable[[Sequence[RowChange]], None] = lambda changes: None
        """Told of what a transaction has changed, in the order of the commits."""
        self.changes: list[RowChange] = []
        """Of the transaction under way."""
        self.tables: list[str] = []

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql.startswith("PRAGMA synchronous"):  # for a disk, which this one has not
            sql = "SELECT 0"
        if sql == "BEGIN IMMEDIATE" and self.is_full():
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        cursor = super().execute(sql, *args)
        if self.changes and not self.in_transaction:
            changes, self.changes = self.changes, []
            if sql != "ROLLBACK":
                self.committed(changes)
        return cursor

    def close(self) -> None:
        """A process closes its own; this one stays."""

    def copy(self) -> Rows:
        """All that is stored now."""
        found = {
            name: super(SharedConnection, self).execute(f"SELECT * FROM {name}").fetchall()
            for name in self.tables
        }
        return {name: rows for name, rows in found.items() if rows}

    def restore(self, copy: Rows) -> None:
        """Have that stored which was when the copy was made, and tell nobody."""
        execute = super().execute
        for name in self.tables:
            execute(f"DELETE FROM {name}")
        for name in self.tables:  # what triggers made of others is replaced by what it was
            if rows := copy.get(name):
                execute(f"DELETE FROM {name}")
                places = ", ".join("?" * len(rows[0]))
                self.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        self.changes.clear()


class SimulatedQueue(SqliteQueue):
    """The queue in SQLite, as one process of a computer opens it."""

    def __init__(self, machine: Machine, **options: Any) -> None:
        super().__init__(f"sqlite:///{machine.folder / 'queue.db'}", **options)
        self._machine = machine
        self._wakeups = SimulatedWakeups(machine)  # type: ignore[assignment]

    def _prepare(self) -> None:
        """The tables are there."""

    def connect(self) -> sqlite3.Connection:
        return self._machine.connection

    def _connect_reader(self) -> sqlite3.Connection:
        return self._machine.connection

    async def exists(self) -> bool:
        return True


class SimulatedWakeups:
    """Wake-ups of one process: late, out of order, or lost, as the computer decides."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._listeners: dict[Topic, dict[Listener, None]] = {topic: {} for topic in Topic}

    def open(self) -> None:
        self.process = current.get()
        self._context = copy_context()
        self._machine.wakeups.append(self)

    async def close(self) -> None:
        self._machine.wakeups.remove(self)

    def listen(self, topic: Topic) -> Listener:
        return Listener(_OrderedSet(self._listeners[topic]))  # type: ignore[arg-type]

    def send(self, topics: set[Topic]) -> None:
        machine = self._machine
        for one in machine.wakeups:
            if machine.wakeups_lost and machine.chance.random() < machine.wakeups_lost:
                continue
            late = machine.chance.uniform(0.0, 0.002)
            machine.loop.call_later(late, one._ring, sorted(topics, key=str), context=one._context)

    def _ring(self, topics: list[Topic]) -> None:
        for topic in topics:
            for listener in list(self._listeners[topic]):
                listener.ring()


class _OrderedSet:
    """A set that tells its members in the order they came, in every run."""

    def __init__(self, members: dict[Any, None]) -> None:
        self._members = members

    def add(self, member: Any) -> None:
        self._members[member] = None

    def discard(self, member: Any) -> None:
        self._members.pop(member, None)


class SimulatedEvent:
    """See `threading.Event`; heard by the `SimulatedTicking` that it is the alarm of."""

    def __init__(self) -> None:
        self._set = False
        self.heard: Callable[[], None] = lambda: None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self.heard()

    def clear(self) -> None:
        self._set = False


class SimulatedTicking:
    """See `penstock.runtime.threads.Ticking`."""

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        pause: float,
        alarm: SimulatedEvent | None = None,
    ) -> None:
        self._step = step
        self._alarm = alarm or SimulatedEvent()
        self._alarm.heard = self._hear
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._stopped = False
        self._timer: Any = None
        self._wait(pause)

    async def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self, pause: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._stopped:
            self._timer = self._loop.call_later(pause, self._tick, context=self._context)

    def _hear(self) -> None:
        self._wait(0.0)

    def _tick(self) -> None:
        self._alarm.clear()
        pause = self._step()
        if pause is None:
            self._stopped = True
        else:
            self._wait(pause)


class SimulatedBatches(Generic[T]):
    """See `penstock.runtime.threads.Batches`."""

    def __init__(
        self,
        machine: Machine,
        perform: Callable[[list[T]], None],
        end: Callable[[], None],
        together: int,
    ) -> None:
        self._machine = machine
        self._perform = perform
        self._end = end
        self._together = together
        self._inbox: list[T] = []
        self._busy = False
        self._context = copy_context()

    @property
    def waiting(self) -> int:
        return len(self._inbox)

    def put(self, item: T) -> None:
        self._inbox.append(item)
        if not self._busy:
            self._busy = True
            self._later()

    def close(self) -> None:
        while self._inbox:
            self._do()
        self._end()

    def _later(self) -> None:
        delay = self._machine.commit_seconds()
        self._machine.loop.call_later(delay, self._run, context=self._context)

    def _run(self) -> None:
        if self._inbox:
            self._do()
        self._busy = bool(self._inbox)
        if self._busy:
            self._later()

    def _do(self) -> None:
        batch, self._inbox = self._inbox[: self._together], self._inbox[self._together :]
        with self._machine.at_server():
            self._perform(batch)


_spare: list[SharedConnection] = []
"""Empty queues. To make the tables takes longer than a simulation, and so does it to have all
statements compiled again."""


def _take_connection() -> SharedConnection:
    if _spare:
        return _spare.pop()
    connection = SharedConnection()
    migrate(connection, Path("simulated"))
    connection.tables = tables(connection)
    watch(connection, lambda change: connection.changes.append(change))
    return connection


def _put_back(connection: SharedConnection) -> None:
    """Keep it for another simulation, emptied."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.is_full = lambda: False
    connection.committed = lambda changes: None
    connection.restore({})
    _spare.append(connection)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for life files: in memory where that can be had."""
    memory = Path("/dev/shm")  # noqa: S108 (the folder below it is private)
    parent = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="penstock-simulation-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
