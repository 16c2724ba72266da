"""A replica that lagged takes over: what the primary had accepted last is gone, and numbers of jobs
are given again. Nobody gets the result of another."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.errors import JobNotFound, QueueUnavailable
from tests.support.postgres import psql
from tests.support.postgres_replica import Pair
from tests.support.waiting import until
from tests.support.worker_processes import FAST

AHEAD = 32
"""Numbers that a sequence of PostgreSQL writes ahead: so many are skipped, not given again."""
LONG = 12
PATIENCE = 60.0


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


class Work:
    """An app whose jobs, by name, wait for their gates."""

    def __init__(self, url: str, kind: str = "work") -> None:
        self.started: list[str] = []
        self.interrupted: list[str] = []
        self.gates = {gate: asyncio.Event() for gate in ("old", "new", "across", "quick")}
        self.gates["quick"].set()
        self.kind = kind
        # A lease that outlasts the failover, so that a membership is lost by nothing else.
        self.app = Penstock(url, **{**FAST, "max_workers": 120, "lease_seconds": 60.0})

        @self.app.job(kind, timeout=PATIENCE)
        async def work(ctx: JobContext, name: str, gate: str) -> str:
            self.started.append(name)
            try:
                await self.gates[gate].wait()
            except asyncio.CancelledError:
                self.interrupted.append(name)
                raise
            return name

    async def enqueue(self, gate: str, count: int) -> dict[str, str]:
        """The names of new jobs, by id."""
        names = [f"{gate}{n}" for n in range(count)]
        jobs = await self.app.enqueue_many(
            self.kind, [{"name": name, "gate": gate} for name in names]
        )
        return {job.id: name for job, name in zip(jobs, names, strict=True)}

    async def runs(self, *names: str) -> None:
        await until(lambda: set(names) <= set(self.started), "the jobs to run", PATIENCE)


async def seqs(url: str, ids: dict[str, str]) -> set[int]:
    async with psql(url) as server:
        rows = await server.fetch("SELECT seq FROM penstock.jobs WHERE id = ANY ($1)", list(ids))
        return {seq for (seq,) in rows}


async def test_no_job_gets_the_result_of_a_job_that_a_failover_lost(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    work, late = Work(pair.url), Work(pair.url, "late")
    async with work.app.running():
        across = await work.enqueue("across", 1)
        await work.runs("across0")
        await pair.in_step()
        pair.cut()
        # From here on nothing is replicated: neither the jobs, nor a membership, nor an outcome.
        work.gates["across"].set()
        (done,) = across
        assert await work.app.wait(done, timeout=PATIENCE) is not None
        async with late.app.running():
            await late.enqueue("old", 1)
            await late.runs("old0")
            for job_id in await work.enqueue("quick", AHEAD + 1 + LONG):
                await work.app.wait(job_id, timeout=PATIENCE)
            old = await work.enqueue("old", LONG)
            await work.runs(*old.values())
            lost = await seqs(pair.primary.url, old)

            await pair.fail_over()
            new = await until(lambda: _accepted(work), "the replica to be had", PATIENCE)
            await work.runs(*new.values())
            assert lost <= await seqs(pair.replica.url, new), "their numbers were given again"
            with caplog.at_level(logging.WARNING, "penstock"):
                work.gates["old"].set()
                await until(
                    lambda: all(f"job {one} " in caplog.text for one in old),
                    "the refusals",
                    PATIENCE,
                )
            assert all(job.result is None for job in await _jobs(work, new))

            # The membership that was lost with its job is noticed: it works under another.
            await until(lambda: late.interrupted == ["old0"], "its run to be interrupted", PATIENCE)
            (again,) = await late.enqueue("quick", 1)
            assert (await late.app.wait(again, timeout=PATIENCE)).result == "quick0"

            work.gates["new"].set()
            for job_id, name in new.items():
                assert (await work.app.wait(job_id, timeout=PATIENCE)).result == name
        for job_id in old:
            with pytest.raises(JobNotFound):
                await work.app.get(job_id)
        # What had ended, in the past that was lost, ends once more.
        assert (await work.app.wait(done, timeout=PATIENCE)).state is JobState.COMPLETED
        assert work.started.count("across0") == 2


async def _accepted(work: Work) -> dict[str, str] | None:
    try:
        return await work.enqueue("new", AHEAD + 1 + 2 * LONG)
    except QueueUnavailable:
        return None


async def _jobs(work: Work, ids: dict[str, str]) -> list[Job]:
    return list((await work.app.queue.get(list(ids))).values())
