"""Real bugs, put back one at a time: the simulation has to find each.

`python -m tests.simulation.planted_bugs SEEDS` tells in how many of so many seeds it does.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from penstock.adapters.sqlite import lanes as lane_store
from penstock.adapters.sqlite.database import WriterThread
from penstock.adapters.sqlite.member import SqliteMember
from penstock.engine import dispatcher, membership
from penstock.engine.claims import Claims
from penstock.engine.internal_queue import InternalQueue
from penstock.testing import SimulationFailed, simulate
from penstock.testing.machine import SharedConnection
from tests.simulation.workload import app, check, receiver, scenario


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Attributes of objects, by name."""
    before = [(where, name, getattr(where, name)) for where, name, _ in changes]
    for where, name, value in changes:
        setattr(where, name, value)
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


def in_sql(*pairs: tuple[str, str]) -> AbstractContextManager[None]:
    """Every statement with these parts replaced."""
    execute = SharedConnection.execute

    def changed(self: SharedConnection, sql: str, *args: Any) -> Any:
        for old, new in pairs:
            sql = sql.replace(old, new)
        return execute(self, sql, *args)

    return replaced((SharedConnection, "execute", changed))


@contextmanager
def both(*changes: AbstractContextManager[None]) -> Iterator[None]:
    with ExitStack() as entered:
        for change in changes:
            entered.enter_context(change)
        yield


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def _unfenced() -> AbstractContextManager[None]:
    return in_sql(
        ("AND jobs.token = s.value ->> 2", ""),
        ("AND +jobs.holder = :member AND jobs.state = 'running'", "AND :member"),
    )


def _unfenced_but_running() -> AbstractContextManager[None]:
    fences = ("AND jobs.token = s.value ->> 2", ""), ("AND +jobs.holder =", "AND")
    return both(in_sql(*fences), replaced((SqliteMember, "_is_member", lambda *_: True)))


def _cancelled_completes() -> AbstractContextManager[None]:
    return in_sql(("+jobs.holder = :member AND jobs.state = 'running'", "+jobs.holder = :member"))


def _taken_back_and_forgotten() -> AbstractContextManager[None]:
    return in_sql(("SET state = :state, ready = :ready, holder = NULL", "SET holder = NULL"))


def _slots_of_permits() -> AbstractContextManager[None]:
    return replaced((lane_store, "free_slots", nothing))


def _slots_not_taken() -> AbstractContextManager[None]:
    return in_sql(("INSERT INTO slots", "INSERT OR IGNORE INTO gone"))


def _dispatcher_dies() -> AbstractContextManager[None]:
    async def run(self: dispatcher.Dispatcher) -> None:
        while not (self._finishing and self.settler.empty):
            await self._turn()

    return replaced((dispatcher.Dispatcher, "run", run))


def _never_rejoins() -> AbstractContextManager[None]:
    async def run(self: Any) -> None:
        await self.events.lapsed.wait()

    return replaced((membership.Membership, "run", run))


def _parked_never_back() -> AbstractContextManager[None]:
    def come_back(self: InternalQueue) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    return replaced((InternalQueue, "come_back", come_back))


def _leases_dropped_on_arrival() -> AbstractContextManager[None]:
    put = Claims.put

    def put_first(self: Claims, leases: Sequence[Any]) -> None:
        put(self, leases[:2])

    return replaced((Claims, "put", put_first))


def _repeats_after_commit() -> AbstractContextManager[None]:
    commit = WriterThread._commit

    def twice(self: WriterThread, orders: Sequence[Any], soft: bool) -> list[Any]:
        commit(self, orders, soft)
        return commit(self, orders, soft)

    return replaced((WriterThread, "_commit", twice))


BUGS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "a settlement is not fenced": _unfenced,
    "a settlement is fenced by the state alone": _unfenced_but_running,
    "a cancelled job completes": _cancelled_completes,
    "jobs of the dead are not queued again": _taken_back_and_forgotten,
    "slots of permits are not freed": _slots_of_permits,
    "the dispatcher ends with its first error": _dispatcher_dies,
    "a process that has lapsed does not join again": _never_rejoins,
    "a parked job gets no worker": _parked_never_back,
    "jobs beyond the second of a claim are forgotten": _leases_dropped_on_arrival,
    "a transaction is repeated after its commit": _repeats_after_commit,
    "slots are not taken": _slots_not_taken,
}


def found(bug: str, seed: int) -> str:
    """What this seed says of this bug; '' where it does not see it."""
    with BUGS[bug]():
        try:
            simulate(app, scenario, seeds=[seed], check=check, reset=receiver.clear, shrink=False)
        except SimulationFailed as failure:
            return failure.found[0]
    return ""


def table(seeds: int) -> Iterator[tuple[str, int, str]]:
    """Each bug, in how many of so many seeds it is found, and what the first one says."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for bug in BUGS:
            said = [one for one in pool.map(found, [bug] * seeds, range(seeds)) if one]
            yield bug, len(said), said[0] if said else ""


if __name__ == "__main__":
    tried = int(sys.argv[1])
    for name, count, first in table(tried):
        print(f"{count:5} of {tried}  {name}: {first[:110]}", flush=True)
