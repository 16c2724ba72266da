"""Real bugs, put back one at a time: the simulation has to find each.

`python -m tests.simulation.planted_bugs SEEDS` tells by which of so many seeds it first does, and
by how many of the first hundred, and keeps that in benchmarks/simulation.json.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from benchmarks.simulation import COUNTED, PlantedBug, keep_bugs
from penstock import runtime
from penstock.adapters.sql import amounts as sql_amounts
from penstock.adapters.sql import takeover
from penstock.adapters.sql.queue import SqlQueue
from penstock.adapters.sql.upkeep import Upkeep
from penstock.adapters.sqlite import lanes as lane_store
from penstock.adapters.sqlite.database import WriterThread
from penstock.adapters.sqlite.member import SqliteMember
from penstock.adapters.sqlite.renewal import Renewal
from penstock.engine import dispatcher
from penstock.engine.claims import Claims, InternalQueue
from penstock.engine.listeners import CancelListener
from penstock.engine.membership import Membership
from penstock.engine.permits import PermitBroker
from penstock.engine.receipts import RunReceipts
from penstock.engine.room import Room
from penstock.engine.settler import Settler
from penstock.lanes import amounts as amounts_rules
from penstock.lanes import breaker, verdict
from penstock.lanes.state import LaneState
from penstock.model.amounts import Amounts
from penstock.ports.lanes import News
from penstock.testing import SimulationFailed, simulate
from penstock.testing.machine import SharedConnection, SimulatedWakeups
from penstock.testing.server import ServerMember, ServerQueue
from tests.simulation import amounts
from tests.simulation.workload import app, check, receiver, scenario

TOLD = 120
_ID = re.compile(r"[0-9a-f]{26}(?=[0-9a-f]{6})")


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
    return replaced((lane_store, "take_slots", nothing))


def _dispatcher_dies() -> AbstractContextManager[None]:
    async def run(self: dispatcher.Dispatcher) -> None:
        while not (self._finishing and self.settler.empty):
            await self._turn()

    return replaced((dispatcher.Dispatcher, "run", run))


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


def _slot_leaks_on_cancel() -> AbstractContextManager[None]:
    hear = PermitBroker._hear

    def hear_who_waits(self: PermitBroker, line: Any, answers: list[tuple[Any, Any]]) -> None:
        hear(self, line, [one for one in answers if not one[0].answer.done()])

    return replaced((PermitBroker, "_hear", hear_who_waits), (PermitBroker, "_unused", nothing))


def _retry_resets_attempts() -> AbstractContextManager[None]:
    retry = "started_at = NULL, error = s.value ->> 5"
    return in_sql((retry, f"attempts = 0, {retry}"))


def _crash_costs_nothing() -> AbstractContextManager[None]:
    take_back = takeover.take_back

    def forgiven(*args: Any) -> Any:
        back = take_back(*args)
        attempts = args[0][7] - 1
        return back._replace(state="queued", attempts=attempts, ready=1, crashes=0)

    return replaced((takeover, "take_back", forgiven))


def _neighbours_of_poison() -> AbstractContextManager[None]:
    take_back = takeover.take_back

    def together(*args: Any) -> Any:
        back = take_back(*args)
        return back._replace(ready=min(back.ready, 1), crashes=0)

    return replaced((takeover, "take_back", together))


def _never_renewed() -> AbstractContextManager[None]:
    return replaced((Renewal, "_renew", lambda *_: True))


def _all_try_at_once() -> AbstractContextManager[None]:
    def may_start(self: LaneState, now: float) -> bool:
        return self.blocked_until <= now and (not self.open or self.retry_at <= now)

    return replaced((LaneState, "may_start", may_start), (lane_store, "end_lost_trials", nothing))


def _first_come_first_served() -> AbstractContextManager[None]:
    return in_sql(
        (
            "SELECT max(coalesce((SELECT last FROM turns",
            "SELECT -1 + max(0 * coalesce((SELECT last FROM turns",
        )
    )


def _never_aged() -> AbstractContextManager[None]:
    async def nobody(self: Upkeep, tx: Any) -> list[Any]:
        return []

    return replaced((Upkeep, "_aged", nobody))


def _children_left() -> AbstractContextManager[None]:
    async def leave(self: Any, *_: Any, **__: Any) -> None:
        """Cancel nobody."""

    return replaced((SqlQueue, "cancel_children", leave))


def _cancel_not_heard() -> AbstractContextManager[None]:
    async def look(self: CancelListener) -> None:
        """See nothing."""

    return replaced((CancelListener, "_look", look))


def _outcomes_of_a_failed_trip() -> AbstractContextManager[None]:
    return replaced((Settler, "put_back", nothing))


def _orphans_kept() -> AbstractContextManager[None]:
    return replaced((ServerMember, "_give_back", nothing))


def _own_clock() -> AbstractContextManager[None]:
    return replaced((ServerQueue, "now", lambda self: runtime.now()))


def _records_not_read() -> AbstractContextManager[None]:
    steps = SqlQueue.steps

    async def only_receipts(self: SqlQueue, job_id: str) -> list[Any]:
        return [row for row in await steps(self, job_id) if row.details is not None]

    return replaced((SqlQueue, "steps", only_receipts))


def _leaves_with_its_jobs() -> AbstractContextManager[None]:
    async def end(rows: Any, number: int, *_: Any) -> list[Any]:
        await rows.tx.execute("DELETE FROM processes WHERE number = :number", number=number)
        return []

    return replaced((takeover, "end_membership", end))


def _wakeups_not_heard() -> AbstractContextManager[None]:
    return replaced((SimulatedWakeups, "_ring", nothing))


def _wakeup_lost_under_way() -> AbstractContextManager[None]:
    """What comes while a claim is under way is taken for what it has found."""
    learn = Room.learn

    def forget(self: Room, want: Any, exchange: Any) -> None:
        self._claims.likely = False
        learn(self, want, exchange)

    return replaced((Room, "learn", forget))


def _paid_for_429() -> AbstractContextManager[None]:
    rate_limited, of_told = breaker.rate_limited, verdict.fault_of_told

    def by_job(*args: Any) -> Any:
        return rate_limited(*args)._replace(fault=breaker.Fault.JOB)

    def told(lane: LaneState, report: Any) -> Any:
        limited = report.news is News.RATE_LIMITED
        return breaker.Fault.JOB if limited else of_told(lane, report)

    return replaced((breaker, "rate_limited", by_job), (verdict, "fault_of_told", told))


def _fenced_by_numbers() -> AbstractContextManager[None]:
    def is_member(self: SqliteMember, tx: Any) -> bool:
        here = "SELECT 1 FROM processes WHERE number = ?"
        return tx.execute(here, (self._number,)).fetchone() is not None

    renewed = ("WHERE number = :member AND id = :id", "WHERE number = :member AND :id <> ''")
    return both(replaced((SqliteMember, "_is_member", is_member)), in_sql(renewed))


def _lapsed_for_good() -> AbstractContextManager[None]:
    async def run(self: Membership) -> None:
        await self.events.lapsed.wait()

    return replaced((Membership, "run", run))


def _signals_not_taken() -> AbstractContextManager[None]:
    return in_sql(("SET taken_by = :key WHERE", "SET taken_by = NULL WHERE :key <> '' AND"))


def _receipts_not_taken() -> AbstractContextManager[None]:
    return replaced((RunReceipts, "take", nothing))


def _void_receipts_taken() -> AbstractContextManager[None]:
    def load(self: RunReceipts, rows: list[Any]) -> None:
        self._known.update((row.key, row) for row in rows)

    return replaced((RunReceipts, "load", load))


def _receipts_outlive_failures() -> AbstractContextManager[None]:
    async def make_void(self: RunReceipts, *_: Any) -> None:
        """Leave them."""

    return replaced((RunReceipts, "make_void", make_void))


def _signals_wake_nobody() -> AbstractContextManager[None]:
    return in_sql(
        (
            "SET run_at = :now, since = :now\nWHERE seq = :seq AND state",
            "SET run_at = run_at + 0 * :now\nWHERE seq = :seq AND state",
        )
    )


def _suspended_past_its_signal() -> AbstractContextManager[None]:
    return in_sql(("AND g.taken_by IS NULL)", "AND g.taken_by IS NULL AND 0)"))


def _keys_of_signals_ignored() -> AbstractContextManager[None]:
    return in_sql(("WHERE job = :seq AND key = :key", "WHERE job = :seq AND key = :key AND 0"))


def _signal_of_another_name() -> AbstractContextManager[None]:
    return in_sql(
        (
            "WHERE job = :seq AND name = :name AND taken_by",
            "WHERE job = :seq AND :name <> '' AND taken_by",
        )
    )


BUGS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "a settlement is not fenced": _unfenced,
    "a settlement is fenced by the state alone": _unfenced_but_running,
    "a cancelled job completes": _cancelled_completes,
    "jobs of the dead are not queued again": _taken_back_and_forgotten,
    "a process that stops keeps its jobs": _leaves_with_its_jobs,
    "slots of permits are not freed": _slots_of_permits,
    "a request that is cancelled keeps its slot": _slot_leaks_on_cancel,
    "slots are not taken": _slots_not_taken,
    "an open breaker lets everybody try": _all_try_at_once,
    "a retry resets the count of attempts": _retry_resets_attempts,
    "a crash costs no attempt": _crash_costs_nothing,
    "a job that kills its process takes others along": _neighbours_of_poison,
    "leases are not renewed": _never_renewed,
    "the dispatcher ends with its first error": _dispatcher_dies,
    "outcomes are lost with the trip that fails": _outcomes_of_a_failed_trip,
    "a parked job gets no worker": _parked_never_back,
    "jobs beyond the second of a claim are forgotten": _leases_dropped_on_arrival,
    "a transaction is repeated after its commit": _repeats_after_commit,
    "a running job does not hear of its cancel": _cancel_not_heard,
    "children outlive their cancelled parent": _children_left,
    "tenants take no turns": _first_come_first_served,
    "jobs that wait are not aged": _never_aged,
    "a step that is recorded is done again": _records_not_read,
    "a receipt is not taken": _receipts_not_taken,
    "a receipt that is void is taken": _void_receipts_taken,
    "a failed attempt leaves its receipts": _receipts_outlive_failures,
    "wake-ups are not heard": _wakeups_not_heard,
    "a wake-up during a claim is lost": _wakeup_lost_under_way,
    "a 429 costs an attempt": _paid_for_429,
    "a process that has lapsed does not join again": _lapsed_for_good,
    "a signal is not marked as taken": _signals_not_taken,
    "a signal wakes nobody": _signals_wake_nobody,
    "a job is suspended past its signal": _suspended_past_its_signal,
    "the key of a signal is ignored": _keys_of_signals_ignored,
    "a wait takes a signal of another name": _signal_of_another_name,
}


SERVER_BUGS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "leases that nobody heard of are kept": _orphans_kept,
    "a process goes by the clock of its host": _own_clock,
    "members are told apart by their number alone": _fenced_by_numbers,
}
"""Those that only a queue on a server can have."""


def _refund_now(
    lanes: Sequence[LaneState], ref: int, token: int, used: Amounts | None, now: float
) -> None:
    """As `settle`, but what was reserved too much is given back to the part of the window that is
    now, and not to that of the start."""
    for lane in lanes:
        if lane.amounts is not None and used is not None:
            limits, use = amounts_rules._read(lane, now)
            for one in use.open:
                if one[0] == ref and one[1] == token:
                    less = [min(0, int(u - r)) for u, r in zip(used, one[3:7], strict=True)]
                    amounts_rules._add(use, math.floor(now / limits.part), less)
            use.open = [one for one in use.open if (one[0], one[1]) != (ref, token)]
            amounts_rules._write(lane, use)


AMOUNT_BUGS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "a refund is given to the current part of the window": lambda: replaced(
        (sql_amounts, "settle", _refund_now)
    ),
}
"""Those of lanes that count tokens, which have a workload of their own."""


def found(bug: str, seed: int) -> str:
    """What this seed says of this bug; '' where it does not see it."""
    server = bug in SERVER_BUGS
    with {**BUGS, **SERVER_BUGS, **AMOUNT_BUGS}[bug]():
        try:
            if bug in AMOUNT_BUGS:
                amounts.run([seed], shrink=False)
                return ""
            simulate(
                app,
                scenario,
                seeds=[seed],
                check=check,
                reset=receiver.clear,
                shrink=False,
                server=server,
            )
        except SimulationFailed as failure:
            return failure.found[0]
    return ""


def look_for(bug: str, seeds: int) -> PlantedBug:
    """The first seed of so many that finds it, and how many of the first `COUNTED` do."""
    first, hits, told = None, 0, ""
    for seed in range(seeds):
        if first is not None and seed >= COUNTED:
            break
        if says := found(bug, seed):
            hits += seed < COUNTED
            if first is None:
                first, told = seed, _ID.sub("...", says)[:TOLD]
    queue = "server" if bug in SERVER_BUGS else "file"
    return PlantedBug(bug, queue, first, seeds, hits, told)


def main(seeds: int) -> int:
    """Look for all of them, and keep what was found for docs/proof.md."""
    results: list[PlantedBug] = []
    names = [*BUGS, *SERVER_BUGS, *AMOUNT_BUGS]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for one in pool.map(look_for, names, [seeds] * len(names)):
            results.append(one)
            where = "not found" if one.first is None else f"seed {one.first}"
            print(f"{where:>10}, {one.hits} of {COUNTED}  {one.bug}: {one.says}", flush=True)
    keep_bugs(results)
    return any(one.first is None for one in results)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
