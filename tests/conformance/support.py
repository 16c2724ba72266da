"""Words shared by the conformance tests. Everything goes through the ports, except what a
`Backend` does to its own storage."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import redis

from penstock.adapters.postgres import PostgresQueue, renewal
from penstock.adapters.postgres import database as postgres_database
from penstock.adapters.postgres import queue as postgres_queue
from penstock.adapters.redis import RedisQueue, connections, wakeups
from penstock.adapters.sqlite import SqliteQueue
from penstock.adapters.sqlite import database as sqlite_database
from penstock.adapters.sqlite.schema import migrate
from penstock.model.ids import new_id, new_ids
from penstock.model.job import Job
from penstock.model.lane import LaneConfig
from penstock.ports.queue import (
    NO_LANE,
    Exchange,
    Inbox,
    JobFilter,
    JobQueue,
    KindDefaults,
    Lease,
    Member,
    NewJob,
    NewJobs,
    Outcome,
    Progress,
    Settlement,
    Want,
)
from tests.conformance import simulated
from tests.support import forks
from tests.support.database_servers import redis_url
from tests.support.postgres import borrow_url, execute, give_back
from tests.support.waiting import PATIENCE

T = TypeVar("T")

KIND = "work"
LONG = 3600.0
"""A lease that does not run out during a test."""
SHORTLY = 0.5
"""Seconds ahead that are usually still ahead after a test's next step; not on a busy machine."""
ROOT = Path(__file__).parents[2]
_WRITE: Any = postgres_database.Pool.write
_BEGIN = postgres_database._BEGIN.replace("'2s'", "'60s'").replace("'3s'", "'60s'")
PATIENT: tuple[tuple[Any, str, Any], ...] = (
    (postgres_database, "CONNECT_SECONDS", PATIENCE),
    (postgres_database, "COMMAND_SECONDS", PATIENCE),
    (postgres_database, "_BEGIN", _BEGIN),
    (_WRITE, "__kwdefaults__", {**_WRITE.__kwdefaults__, "seconds": PATIENCE}),
    (postgres_queue, "COMMAND_SECONDS", PATIENCE),
    (renewal, "COMMAND_SECONDS", PATIENCE),
    (connections, "ANSWER_SECONDS", PATIENCE),
    (connections, "_OPTIONS", {**connections._OPTIONS, "socket_connect_timeout": PATIENCE}),
    (wakeups, "ANSWER_SECONDS", PATIENCE),
    (wakeups, "QUIET_SECONDS", PATIENCE),
    (sqlite_database, "BUSY_SECONDS", PATIENCE),
)
"""Where adapters give up what takes seconds, which no test here is about, and a busy machine's
process or server may be held up for as long: what to set, on what, and to what."""


def no_limits(name: str) -> LaneConfig:
    """A lane for tests that are not about its limits."""
    return LaneConfig(min_interval_seconds=0.0, max_parallel=1000)


LAPSE = "UPDATE penstock.processes SET lease_until = 1 WHERE id = $1"
IDLE = "UPDATE penstock.lanes SET touched_at = touched_at - $1"
AHEAD = (
    "UPDATE penstock.lanes SET touched_at = touched_at + $1, next_start = next_start + $1,"
    " retry_at = retry_at + $1, probed_at = probed_at + $1",
    "UPDATE penstock.lanes SET blocked_until = blocked_until + $1"
    " WHERE blocked_until > 0 AND blocked_until < 1e12",  # which is for ever
    "UPDATE penstock.lines SET since = since + $1, wake_at = wake_at + $1",
    "UPDATE penstock.budgets SET begins = begins + $1, ends = ends + $1",
)


JUMP = (
    "UPDATE penstock.processes"
    " SET heartbeat_at = heartbeat_at - $1, lease_until = lease_until - $1",
    "UPDATE penstock.jobs SET run_at = run_at - $1, since = since - $1"
    " WHERE state = 'failed' OR (state = 'queued' AND ready = 0)",
)


class Backend(Protocol):
    """How to open queues of one kind, and to move their clock."""

    def url(self, folder: Path) -> str:
        """A place for a new queue."""
        ...

    def give_back(self, url: str) -> None:
        """Take back a place that `url` gave; nothing uses it any more."""
        ...

    def queue(self, url: str, **options: Any) -> JobQueue:
        """A queue with these options of its class."""
        ...

    def lapse(self, url: str, member: str) -> None:
        """Let the lease of `member` run out now, as if it had not been renewed: it ends before it
        began, so nobody has to have watched it."""
        ...

    def jump(self, url: str, seconds: float) -> None:
        """Let the clock have jumped so far since memberships were renewed, and jobs put off or
        buried."""
        ...

    def idle(self, url: str, seconds: float) -> None:
        """Let every lane have been used last that long ago."""
        ...

    def ahead(self, url: str, seconds: float) -> None:
        """Let all that is stored of lanes have been written by a clock so far ahead."""
        ...


class SqlBackend:
    """What the tables of all SQL queues have in common."""

    def lapse(self, url: str, member: str) -> None:
        self.execute(url, LAPSE, member)

    def jump(self, url: str, seconds: float) -> None:
        for statement in JUMP:
            self.execute(url, statement, seconds)

    def idle(self, url: str, seconds: float) -> None:
        self.execute(url, IDLE, seconds)

    def ahead(self, url: str, seconds: float) -> None:
        for statement in AHEAD:
            self.execute(url, statement, seconds)

    def execute(self, url: str, statement: str, *values: Any) -> None:
        """Change what is stored, behind everybody's back."""
        raise NotImplementedError


class SqliteBackend(SqlBackend):
    """Without fsync: no test here is about a power loss."""

    def give_back(self, url: str) -> None:
        """pytest removes the folder."""

    def url(self, folder: Path) -> str:
        path = folder / "jobs.db"
        path.touch(0o600)
        path.write_bytes(_new_file())
        return f"sqlite:///{path}"

    def queue(self, url: str, **options: Any) -> JobQueue:
        return SqliteQueue(url, durable=False, **options)

    def execute(self, url: str, statement: str, *values: Any) -> None:
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(for_sqlite(statement), values)


@cache
def _new_file() -> bytes:
    """A queue in which nothing was done: to make its tables takes longer than many a test."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.db"
        with closing(sqlite_database.connect(path, "NORMAL")) as connection:
            migrate(connection, path)
        return path.read_bytes()


def for_sqlite(statement: str) -> str:
    return statement.replace("penstock.", "").replace("$", "?")


class SimulatedBackend(SqlBackend):
    """The model of a server; it comes and goes with the test, see `simulated`."""

    def give_back(self, url: str) -> None:
        """Nothing is left of it."""

    def url(self, folder: Path) -> str:
        return simulated.NAME

    def queue(self, url: str, **options: Any) -> JobQueue:
        return simulated.here().queue(**options)

    def execute(self, url: str, statement: str, *values: Any) -> None:
        simulated.here().machine.connection.execute(for_sqlite(statement), values)


class RedisBackend:
    """Each test in a namespace of its own, on a server that all share."""

    def __init__(self, flavour: str) -> None:
        self._flavour = flavour

    def url(self, folder: Path) -> str:
        return f"{redis_url(self._flavour)}?namespace={new_id()}"

    def give_back(self, url: str) -> None:
        """What is left there ends with the run."""

    def queue(self, url: str, **options: Any) -> JobQueue:
        return RedisQueue(url, **options)

    def lapse(self, url: str, member: str) -> None:
        plain, _, namespace = url.partition("?namespace=")
        tag = f"{{{namespace}}}"
        with redis.Redis.from_url(plain, decode_responses=True) as server:
            for number in server.zrange(f"{tag}:processes", 0, -1):
                if server.hget(f"{tag}:process:{number}", "id") == member:
                    server.hset(f"{tag}:process:{number}", "lease_until", "1")

    def jump(self, url: str, seconds: float) -> None:
        plain, _, namespace = url.partition("?namespace=")
        tag = f"{{{namespace}}}"
        with redis.Redis.from_url(plain, decode_responses=True) as server:
            for number in server.zrange(f"{tag}:processes", 0, -1):
                server.zincrby(f"{tag}:processes", -seconds, number)
                for field in ("heartbeat_at", "lease_until"):
                    at = float(server.hget(f"{tag}:process:{number}", field) or 0.0)
                    server.hset(f"{tag}:process:{number}", field, repr(at - seconds))
            for seq in server.zrange(f"{tag}:scheduled", 0, -1):
                for key, field in (("scheduled", "run_at"), ("put_off", "since")):
                    at = server.zincrby(f"{tag}:{key}", -seconds, seq)
                    server.hset(f"{tag}:job:{seq}", field, repr(at))

    def idle(self, url: str, seconds: float) -> None:
        plain, _, namespace = url.partition("?namespace=")
        with redis.Redis.from_url(plain, decode_responses=True) as server:
            for name in server.zrange(f"{{{namespace}}}:lanes", 0, -1):
                server.zincrby(f"{{{namespace}}}:lanes", -seconds, name)

    def ahead(self, url: str, seconds: float) -> None:
        plain, _, namespace = url.partition("?namespace=")
        tag = f"{{{namespace}}}"
        with redis.Redis.from_url(plain, decode_responses=True) as server:
            for name in server.zrange(f"{tag}:lanes", 0, -1):
                server.zincrby(f"{tag}:lanes", seconds, name)
                for field in ("next_start", "retry_at", "probed_at", "blocked_until"):
                    at = float(server.hget(f"{tag}:lane:{name}", field) or 0.0)
                    if 0 < at < 1e12:  # which is for ever
                        server.hset(f"{tag}:lane:{name}", field, repr(at + seconds))
            for name in server.zrange(f"{tag}:troubled", 0, -1):
                server.zincrby(f"{tag}:troubled", seconds, name)
            for kind in server.smembers(f"{tag}:lined"):
                for key in (f"{tag}:lines:{kind}", f"{tag}:looks:{kind}"):
                    for name in server.zrange(key, 0, -1):
                        server.zincrby(key, seconds, name)
            for payer in server.smembers(f"{tag}:budgets"):
                for field in ("begins", "ends"):
                    at = float(server.hget(f"{tag}:budget:{payer}", field) or 0.0)
                    server.hset(f"{tag}:budget:{payer}", field, f"{at + seconds:.17g}")


class PostgresBackend(SqlBackend):
    """A namespace of its own for each test at a time, in the server that tests share."""

    def url(self, folder: Path) -> str:
        return borrow_url("queue")

    def give_back(self, url: str) -> None:
        give_back("queue", url)

    def queue(self, url: str, **options: Any) -> JobQueue:
        return PostgresQueue(url, **options)

    def execute(self, url: str, statement: str, *values: Any) -> None:
        execute(url, statement, *values)


BACKENDS: dict[str, Backend] = {
    "postgres": PostgresBackend(),
    "sqlite": SqliteBackend(),
    "redis": RedisBackend("redis"),
    "valkey": RedisBackend("valkey"),
}
"""Every queue there is."""
SUITE: dict[str, Backend] = {**BACKENDS, simulated.NAME: SimulatedBackend()}
"""What the suite runs against."""


class Ledger:
    """One stored queue; opens any number of queue objects on it and closes them at the end."""

    def __init__(self, name: str, folder: Path) -> None:
        self.backend_name = name
        self.backend = SUITE[name]
        self.url = self.backend.url(folder)
        self._stack = AsyncExitStack()
        self._members: list[Member] = []

    async def open(self, **options: Any) -> JobQueue:
        queue = self.backend.queue(self.url, **{"lane_config": no_limits, **options})
        await queue.open()
        self._stack.push_async_callback(queue.close)
        return queue

    async def join(
        self,
        queue: JobQueue,
        *kinds: str,
        lease_seconds: float = LONG,
        max_workers: int = 10,
        inbox: Inbox | None = None,
    ) -> Member:
        member = await queue.join(list(kinds or (KIND,)), max_workers, lease_seconds, inbox)
        self._members.append(member)
        return member

    async def leave(self, member: Member) -> None:
        self._members.remove(member)
        await member.leave()

    def lapse(self, member: Member) -> None:
        self.backend.lapse(self.url, member.id)

    def jump(self, seconds: float) -> None:
        """See `Backend.jump`."""
        self.backend.jump(self.url, seconds)

    def idle(self, seconds: float) -> None:
        self.backend.idle(self.url, seconds)

    def later(self, seconds: float) -> None:
        """Let so much time pass for all that is stored of lanes."""
        self.backend.ahead(self.url, -seconds)

    async def close(self) -> None:
        for member in self._members:
            await member.leave()
        await self._stack.aclose()
        self.backend.give_back(self.url)


async def until(
    condition: Callable[[], Awaitable[T]], what: str = "it", patience: float = PATIENCE
) -> T:
    """The first true answer of `condition`, asked again and again until patience ends."""
    give_up = time.monotonic() + patience
    while True:
        if found := await condition():
            return found
        assert time.monotonic() < give_up, f"waited {patience:g} s in vain for {what}"
        await asyncio.sleep(0.005)


async def clock_passes(at: float) -> None:
    """Wait until the clock has passed `at`."""
    await until(_passed(at), f"the clock to pass {at}")


def _passed(at: float) -> Callable[[], Awaitable[bool]]:
    async def passed() -> bool:
        return time.time() > at

    return passed


def new_jobs(
    count: int = 1,
    *,
    kind: str = KIND,
    payloads: Sequence[str] | None = None,
    keys: Sequence[str | None] | None = None,
    ids: Sequence[str] | None = None,
    lane: str = NO_LANE,
    amount: str | None = None,
    timeout: float | None = 30.0,
    max_retries: int | None = 3,
    **options: Any,
) -> NewJobs:
    payloads = [f'{{"n":{n}}}' for n in range(count)] if payloads is None else payloads
    keys = [None] * len(payloads) if keys is None else keys
    ids = new_ids(len(payloads)) if ids is None else ids
    items = [
        NewJob(job_id, payload, key, lane, amount=amount)
        for job_id, payload, key in zip(ids, payloads, keys, strict=True)
    ]
    return NewJobs(kind=kind, items=items, timeout=timeout, max_retries=max_retries, **options)


async def add(queue: JobQueue, count: int = 1, **options: Any) -> list[Job]:
    return await queue.enqueue(new_jobs(count, **options))


async def add_one(queue: JobQueue, **options: Any) -> Job:
    (job,) = await add(queue, 1, **options)
    return job


async def add_keyed(queue: JobQueue, key: str, payload: str = "{}", **options: Any) -> Job:
    (job,) = await queue.enqueue(new_jobs(payloads=[payload], keys=[key], **options))
    return job


def want(limit: int = 10, *kinds: str, crashed: bool = True) -> Want:
    return Want(limit, {kind: KindDefaults(30.0, 3) for kind in kinds or (KIND,)}, crashed)


async def exchange(
    member: Member, *settlements: Settlement, wanted: Want | None = None
) -> Exchange:
    return await member.exchange(settlements, [], wanted)


async def claim(member: Member, limit: int = 10, *kinds: str, crashed: bool = True) -> list[Lease]:
    return (await exchange(member, wanted=want(limit, *kinds, crashed=crashed))).leases


async def claim_one(member: Member, *kinds: str) -> Lease:
    (lease,) = await claim(member, 1, *kinds)
    return lease


async def settle(member: Member, *settlements: Settlement) -> list[Settlement]:
    """Settle; those that were refused."""
    return (await exchange(member, *settlements)).stale


async def report(member: Member, lease: Lease, fraction: float, message: str) -> None:
    """Progress of a run."""
    await member.exchange([], [Progress(lease, fraction, message)], None)


def error_of(type_: str = "Boom", message: str = "it broke") -> dict[str, Any]:
    return {"type": type_, "message": message, "retryable": True}


End = Callable[[Lease], Settlement]
"""A way to end a lease."""


def completed(lease: Lease, result: str = "null") -> Settlement:
    now = time.time()
    return Settlement(lease, Outcome.COMPLETED, now - 1, now, result=result)


def failed(lease: Lease, type_: str = "Boom", message: str = "it broke") -> Settlement:
    now = time.time()
    error = error_of(type_, message)
    return Settlement(lease, Outcome.FAILED, now - 1, now, error=error, traceback="here")


def retry(lease: Lease, run_at: float = 0.0, message: str = "it broke") -> Settlement:
    now = time.time()
    error = error_of(message=message)
    return Settlement(lease, Outcome.RETRY, now - 1, now, error=error, run_at=run_at or now)


def released(lease: Lease, run_at: float = 0.0, reason: str = "not yet") -> Settlement:
    error = {"message": reason}
    return Settlement(lease, Outcome.RELEASED, error=error, run_at=run_at or time.time())


def handed_back(lease: Lease, run_at: float = 0.0) -> Settlement:
    return Settlement(lease, Outcome.HANDED_BACK, run_at=run_at)


def cancel_seen(lease: Lease) -> Settlement:
    return Settlement(lease, Outcome.CANCEL_SEEN)


def one(job_or_lease: Job | Lease) -> JobFilter:
    return JobFilter(ids=[job_or_lease.id])


def ids_of(items: Sequence[Job | Lease]) -> list[str]:
    return [item.id for item in items]


async def get(queue: JobQueue, job_id: str) -> Job:
    """The job as it stands now."""
    return (await queue.get([job_id]))[job_id]


async def finish_as(queue: JobQueue, member: Member, state: str, **options: Any) -> Job:
    """A job that has been run (or cancelled) and stands in `state`."""
    job = await add_one(queue, **options)
    if state == "cancelled":
        await queue.cancel(one(job))
    else:
        leases = await claim(member, 100, job.kind)
        lease = next(lease for lease in leases if lease.id == job.id)
        await settle(
            member,
            completed(lease) if state == "completed" else failed(lease),
            *(handed_back(other) for other in leases if other.id != job.id),
        )
    return await get(queue, job.id)


class Doomed(Protocol):
    """A worker process that is going to be killed."""

    @property
    def member(self) -> str: ...

    async def kill(self) -> None: ...


async def hold(queue: JobQueue, claims: int, starts: int, lanes: int) -> Member:
    """Join, claim jobs (`lanes` of them in lanes) and start some."""
    await queue.open()
    member = await queue.join([KIND], 10, LONG)
    wanted = want(claims - lanes)._replace(lanes=lanes)
    leases = (await exchange(member, wanted=wanted)).leases
    assert len(leases) == claims
    for lease in leases[:starts]:
        member.mark_started(lease)
    return member


class DoomedProcess:
    """A real one; see `doomed.py`."""

    def __init__(self, process: asyncio.subprocess.Process, member: str) -> None:
        self._process = process
        self.member = member

    async def kill(self) -> None:
        await self._process.communicate(b"\n")
        assert self._process.returncode == -signal.SIGKILL


async def doomed(ledger: Ledger, *, claims: int = 1, starts: int = 0, lanes: int = 0) -> Doomed:
    """A process that holds jobs; see `hold`."""
    if ledger.backend_name == simulated.NAME:
        queue = ledger.backend.queue(ledger.url, lane_config=no_limits)
        return await simulated.here().doomed(hold(queue, claims, starts, lanes))
    counts = map(str, (claims, starts, lanes))
    process = await asyncio.create_subprocess_exec(
        *forks.command("tests.conformance.doomed", ledger.backend_name, ledger.url, *counts),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    return DoomedProcess(process, (await process.stdout.readline()).decode().strip())


async def dies(ledger: Ledger, *, claims: int = 1, starts: int = 0, lanes: int = 0) -> None:
    """Let a process hold jobs, and be killed."""
    await (await doomed(ledger, claims=claims, starts=starts, lanes=lanes)).kill()
