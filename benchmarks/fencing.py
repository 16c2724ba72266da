"""A holder that comes back after its job was given to another: is what it writes accepted?"""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from benchmarks.contenders.base import Contender, runs
from benchmarks.contenders.huey_sqlite import HueySqlite
from benchmarks.contenders.penstock_sqlite import PenstockSqlite, build
from benchmarks.processes import WorkerProcess, wait_until
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh
from penstock.ports.queue import KindDefaults, Lease, Outcome, Settlement, Want

LEASE_SECONDS = 0.5
NAP_SECONDS = 0.5
FROZEN_SECONDS = 3.0
"""Six leases: longer than a takeover needs."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    name = "late writes of a holder that lost its job, SQLite"
    accepted = [asyncio.run(_late_writes(fresh(folder), sizes.late_writes))]
    ours = PenstockSqlite(settings={"lease_seconds": LEASE_SECONDS})
    frozen = [_freeze(ours, fresh(folder)) for _ in range(sizes.frozen_processes)]
    huey = HueySqlite()
    peers = [_freeze(huey, fresh(folder)) for _ in range(sizes.frozen_processes)]
    taken_over = sum(rescued for rescued, _ in peers)
    note = (
        f"SIGSTOP in the middle of a job for {FROZEN_SECONDS:g} s, a second worker process beside "
        f"it, then SIGCONT. penstock's second process did {sum(r for r, _ in frozen)} of "
        f"{len(frozen)} jobs meanwhile (a lease is {LEASE_SECONDS:g} s here); huey's {taken_over} "
        f"of {len(peers)}: it takes a task out of the queue before running it, so nobody else can "
        "ever have it, and there is no late write because there is no takeover."
    )
    return [
        Result(
            name,
            f"accepted of {2 * sizes.late_writes}, straight to the queue",
            "writes",
            Figure.of("penstock", [float(sum(accepted))]),
            None,
            Better.LESS,
            AtMost(0, "writes"),
            "Half while the new holder still runs the job, half after it has finished.",
        ),
        Result(
            name,
            f"results overwritten by {sizes.frozen_processes} thawed processes",
            "results",
            Figure.of("penstock", [float(sum(overwritten for _, overwritten in frozen))]),
            None,
            Better.LESS,
            AtMost(0, "results"),
            note,
        ),
    ]


async def _late_writes(folder: Path, count: int) -> int:
    """Settle jobs under leases that have been taken over; how many were accepted."""
    app = build(folder, {})
    want = Want(count, {"noop": KindDefaults(60.0, 3)}, crashed=True)
    async with app:
        await app.enqueue_many("noop", [{"n": n} for n in range(count)])
        zombie = await app.queue.join(["noop"], 10, LEASE_SECONDS)
        old = (await zombie.exchange([], [], want)).leases
        await asyncio.sleep(LEASE_SECONDS * 1.5)  # not renewed
        heir = await app.queue.join(["noop"], 10, 60.0)
        new: list[Lease] = []
        # The heir takes over when it has seen no renewal for a lease by its own clock; a job that
        # may have crashed a process is given out alone.
        while len(new) < count:
            await heir.upkeep()
            new += (await heir.exchange([], [], want)).leases
        late = [_completed(lease, '"late"') for lease in old]
        refused = len((await zombie.exchange(late, [], None)).stale)
        stale = (await heir.exchange([_completed(lease, '"new"') for lease in new], [], None)).stale
        assert not stale, "the new holder was refused"
        refused += len((await zombie.exchange(late, [], None)).stale)
        jobs = await app.queue.get([lease.id for lease in new])
        assert all(job.result == "new" for job in jobs.values()), "a late write was stored"
        await heir.leave()
        await zombie.leave()
    return 2 * count - refused


def _completed(lease: Lease, result: str) -> Settlement:
    now = time.time()
    return Settlement(lease, Outcome.COMPLETED, now, now, result)


def _freeze(contender: Contender, folder: Path) -> tuple[bool, bool]:
    """Whether another process did the frozen one's job, and whether its result was lost."""
    job_id = asyncio.run(_send_nap(contender, folder))
    with (
        contender.ledger(folder) as ledger,
        WorkerProcess(contender.worker(folder), folder) as zombie,
        WorkerProcess(contender.worker(folder), folder) as heir,
    ):
        zombie.ready().go()
        wait_until(lambda: len(runs(folder)) == 1, "the job started", zombie)
        zombie.signal(signal.SIGSTOP)
        heir.ready().go()
        time.sleep(FROZEN_SECONDS)
        rescued = ledger.finished() == 1
        zombie.signal(signal.SIGCONT)
        wait_until(lambda: ledger.finished() == 1, "the job finished", heir, patience=10.0)
        time.sleep(2 * NAP_SECONDS)  # the thawed process's own end of the job
        pid = asyncio.run(_result(contender, folder, job_id))
        return rescued, rescued and pid != heir.pid


async def _send_nap(contender: Contender, folder: Path) -> str:
    async with contender.client(folder) as client:
        return await client.send("nap", {"seconds": NAP_SECONDS})


async def _result(contender: Contender, folder: Path, job_id: str) -> int:
    async with contender.client(folder) as client:
        return int((await client.results([job_id]))[0])
