"""How SQLite goes about lanes: the cost of a claim, a settlement and a permit follows what is
taken and the lanes ready, never the backlog or the number of lanes known."""

import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.sql import permits
from penstock.adapters.sql.lanes import note_probe, take_probes
from penstock.adapters.sqlite import SqliteQueue, claim, settle
from penstock.adapters.sqlite.lanes import SqliteLanes, configure
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.model.ids import new_id
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import LaneCommand, News, PermitRequest, Report
from penstock.ports.queue import KindDefaults, Lease, NewJob, NewJobs, Outcome, Settlement, Want
from tests.integration.adapters.sqlite.test_plans import JOIN, Recorder, plan

FREE = 200
ME = 1000
WANT = Want(0, {"work": KindDefaults(1.0, 1)}, True, lanes=FREE)


def lane_config(name: str) -> LaneConfig:
    if name.startswith("slow"):
        return LaneConfig(min_interval_seconds=3600.0, max_parallel=1000)
    if name.startswith("full"):
        return LaneConfig(min_interval_seconds=0.0, max_parallel=1)
    if name.startswith("child"):
        return LaneConfig(min_interval_seconds=0.0, max_parallel=5, parent="full")
    return LaneConfig(min_interval_seconds=0.0, max_parallel=1000)


async def enqueue(queue: SqliteQueue, *lanes: str) -> None:
    items = [NewJob(new_id(), "{}", None, lane) for lane in lanes]
    await queue.enqueue(NewJobs(kind="work", items=items))


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[SqliteQueue]:
    url = f"sqlite:///{tmp_path}/jobs.db"
    queue = SqliteQueue(url, durable=False, lane_config=lane_config)
    await queue.open()
    await enqueue(queue, *["free"] * FREE)
    yield queue
    await queue.close()


@contextmanager
def transaction(queue: SqliteQueue) -> Iterator[sqlite3.Connection]:
    """A member in a transaction that is taken back."""
    with closing(queue.connect()) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(JOIN, {"number": ME, "until": time.time() + 1000})
        yield connection
        connection.execute("ROLLBACK")


def claim_in(transaction: Transaction) -> list[Lease]:
    return claim.claim(transaction, ME, WANT, {}, lane_config).leases


def cost(queue: SqliteQueue, work: Callable[[Transaction], Any]) -> int:
    """Of `work`, in steps of SQLite's machine (not time, so that it is exact)."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with transaction(queue) as connection:
        connection.set_progress_handler(count, 10)
        work(Transaction(connection, {}))
        connection.set_progress_handler(None, 0)
    return steps


def claim_cost(queue: SqliteQueue) -> int:
    leases: list[Lease] = []
    steps = cost(queue, lambda tx: leases.extend(claim_in(tx)))
    assert [lease.lane for lease in leases] == ["free"] * FREE
    return steps


async def look_at_all(queue: SqliteQueue) -> None:
    """Claim what can be claimed outside the free lane, as the first processes to come would."""
    await queue.control("free", LaneCommand.PAUSE)
    member = await queue.join(["work"], 10, 60.0)
    while True:
        trip = await member.exchange([], [], WANT)
        if not trip.leases and (trip.next_at is None or trip.next_at > time.time()):
            break
    await queue.control("free", LaneCommand.RESUME)
    # Its jobs stay with it, running, so that slots stay taken.
    with closing(queue.connect()) as connection:
        connection.execute("UPDATE processes SET lease_until = lease_until + 1000")


BLOCKED = {
    "paused": "paused",
    "waiting for their rate": "slow",
    "waiting for a slot": "full",
}


@pytest.mark.parametrize("why", BLOCKED)
async def test_claim_costs_the_same_with_20000_jobs_of_a_blocked_lane_in_front(
    queue: SqliteQueue, why: str
) -> None:
    lane = BLOCKED[why]
    alone = claim_cost(queue)
    await enqueue(queue, lane)
    if why == "paused":
        await queue.control(lane, LaneCommand.PAUSE)
    for _ in range(2):
        await enqueue(queue, *[lane] * 10_000)
    await look_at_all(queue)

    assert claim_cost(queue) <= 1.2 * alone


@pytest.mark.parametrize("why", ["slow", "full", "child"])
async def test_claim_costs_the_same_with_2000_blocked_lanes(queue: SqliteQueue, why: str) -> None:
    await enqueue(queue, *(f"{why}{n}" for n in range(10) for _ in range(2)))
    await look_at_all(queue)
    few = claim_cost(queue)
    await enqueue(queue, *(f"{why}{n}" for n in range(2000) for _ in range(2)))
    await look_at_all(queue)

    assert claim_cost(queue) <= 1.2 * few


async def test_permit_costs_the_same_with_2000_lanes_and_20000_jobs(queue: SqliteQueue) -> None:
    def take(tx: Transaction) -> None:
        configure(tx, ["free"], lane_config)
        asked = [PermitRequest("free", -1, False, 1.0)]
        run(permits.take(SqliteLanes(tx.shared), ME, asked))

    few = cost(queue, take)
    await enqueue(queue, *(f"slow{n}" for n in range(2000)))
    for _ in range(2):
        await enqueue(queue, *["free"] * 10_000)

    assert cost(queue, take) <= 1.2 * few


async def test_settling_costs_the_same_with_2000_lanes_and_20000_jobs(queue: SqliteQueue) -> None:
    def work(tx: Transaction) -> None:
        leases = claim_in(tx)
        report = Report(News.SUCCESS)
        ends = [
            Settlement(lease, Outcome.COMPLETED, 1.0, 2.0, "null", report=report)
            for lease in leases
        ]
        settle.settle(tx, ME, "member", ends)

    few = cost(queue, work)
    await enqueue(queue, *(f"full{n}" for n in range(2000) for _ in range(2)))
    for _ in range(2):
        await enqueue(queue, *["free"] * 10_000)
    await look_at_all(queue)

    assert cost(queue, work) <= 1.2 * few


async def test_looking_for_lanes_to_probe_costs_nothing_while_all_are_well(
    queue: SqliteQueue,
) -> None:
    few = cost(queue, lambda tx: run(take_probes(tx.shared)))
    await enqueue(queue, *(f"slow{n}" for n in range(2000)))

    assert cost(queue, lambda tx: run(take_probes(tx.shared))) <= few + 5


async def test_every_statement_on_lanes_goes_by_index(queue: SqliteQueue) -> None:
    await enqueue(queue, *(f"full{n}" for n in range(500) for _ in range(2)))
    with transaction(queue) as connection:
        recorder = Recorder(connection)
        leases = claim_in(recorder)
        asked = [PermitRequest("free", -1, False, 1.0), PermitRequest("full1", -2, False, 1.0)]
        configure(recorder, ["free", "full1"], lane_config)
        run(permits.take(SqliteLanes(recorder.shared), ME, asked))
        down = Report(News.UNAVAILABLE, None, None, "127.0.0.1:9")
        ends = [
            Settlement(lease, Outcome.RETRY, 1.0, 2.0, error={}, run_at=3.0, report=down)
            for lease in leases[:5]
        ]
        settle.settle(recorder, ME, "member", ends)
        run(take_probes(recorder.shared))
        run(note_probe(SqliteLanes(recorder.shared), leases[0].lane, False))
        claim_in(recorder)
        for statement, parameters in recorder.executed:
            # Whether there are any lines at all is one look at the first.
            tables = "jobs|lanes|slots" + ("" if statement == sql("pending") else "|lines")
            for step in plan(connection, statement, parameters):
                assert not re.match(rf"SCAN (TABLE )?({tables})\b(?!.* INDEX)", step), (
                    statement,
                    step,
                )
