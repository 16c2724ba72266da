"""The backlog of a queue in a database, folded by one statement."""

from __future__ import annotations

from dataclasses import asdict

from penstock.adapters.sql.lanes import LaneRows
from penstock.model.amounts import NOTHING, Amounts
from penstock.ports.backlog import PAST_RUNS, Backlog, PastRun, RunningJob, WaitingJobs


async def read(rows: LaneRows) -> Backlog:
    """All of it as one snapshot has it. Reads every queued job once."""
    tx = rows.tx
    waiting = [
        WaitingJobs(kind, tenant, lane, band, bool(due), count, first, last, _whole(amount))
        for kind, tenant, lane, band, due, count, first, last, *amount in await tx.fetch(
            "waiting_jobs", now=tx.now
        )
    ]
    running = [
        RunningJob._make([*row, Amounts.read(amount) or NOTHING])
        for *row, amount in await tx.fetch("running_jobs")
    ]
    past = [
        PastRun._make([*row, Amounts.read(amount) or NOTHING])
        for *row, amount in await tx.fetch("past_runs", limit=PAST_RUNS)
    ]
    lanes = [asdict(lane) for lane in (await rows.look(None)).values()]
    return Backlog(tx.now, waiting, running, lanes, past)


def _whole(parts: list[int]) -> Amounts:
    """Sums are decimals in PostgreSQL."""
    return Amounts(*map(int, parts))
