"""An app that uses all that the engine has, and a scenario that the seed decides."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from penstock import JobContext, JobState, Penstock, PermanentError, runtime
from penstock.model.job import Job
from penstock.testing.loop import SimulatedProcess, current

NARROW, PARALLEL, INTERVAL = "narrow", 2, 0.05
LANES = {
    NARROW: {"min_interval_seconds": INTERVAL, "max_parallel": PARALLEL},
    "api": {
        "min_interval_seconds": 0.02,
        "max_parallel": 4,
        "timeout_seconds": 2.0,
        "breaker_first_seconds": 0.5,
        "breaker_cap_seconds": 4.0,
    },
}
app = Penstock(
    "sqlite:///simulated.db",
    max_workers=3,
    lease_seconds=3.0,
    retry_base_seconds=0.1,
    retry_cap_seconds=2.0,
    job_timeout=10.0,
    lanes=LANES,
)


@dataclass(slots=True, eq=False)
class _Visit:
    process: SimulatedProcess
    lapses: int


@dataclass(slots=True)
class Receiver:
    """The service behind the narrow lane: it counts who is there at once."""

    there: list[_Visit] = field(default_factory=list)
    most: int = 0
    starts: list[float] = field(default_factory=list)

    async def visit(self, seconds: float) -> None:
        process = current.get()
        # Whoever died or stood still has lost its slot, and is still here.
        held = [one for one in self.there if one.process.alive and one.lapses == one.process.lapses]
        self.most = max(self.most, len(held) + 1)
        visit = _Visit(process, process.lapses)
        self.there.append(visit)
        self.starts.append(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(seconds)
        finally:
            self.there.remove(visit)

    def clear(self) -> None:
        self.there.clear()
        self.starts.clear()
        self.most = 0


receiver = Receiver()


@app.job("echo")
async def echo(ctx: JobContext, seconds: float) -> str:
    await asyncio.sleep(seconds)
    await ctx.progress(0.5, "half way")
    await asyncio.sleep(seconds)
    return ctx.job.id


@app.job("flaky", max_retries=8)
async def flaky(ctx: JobContext, failures: int) -> str:
    await asyncio.sleep(0.01)
    if ctx.attempt <= failures:
        raise ValueError("not yet")
    return ctx.job.id


@app.job("hopeless")
async def hopeless(ctx: JobContext) -> None:
    raise PermanentError("never")


@app.job("plain")
def plain(ctx: JobContext) -> str:
    return ctx.job.id


@app.job("narrow", lane=NARROW)
async def narrow(ctx: JobContext, seconds: float) -> str:
    async with ctx.lanes.request(NARROW):
        await receiver.visit(seconds)
    return ctx.job.id


@app.job("fan-out", timeout=60.0)
async def fan_out(ctx: JobContext, width: int) -> str:
    async def one() -> None:
        async with ctx.lanes.permit(NARROW):
            await receiver.visit(0.05)

    await asyncio.gather(*(one() for _ in range(width)))
    return ctx.job.id


@app.job("call", lane="api", max_retries=8)
async def call(ctx: JobContext) -> str:
    await ctx.http.get("http://api.example/thing")
    return ctx.job.id


@app.job("parent", timeout=60.0)
async def parent(ctx: JobContext, children: int) -> str:
    made = [await ctx.enqueue("echo", {"seconds": 0.05}) for _ in range(children)]
    done = {one.id: one.result async for one in ctx.finished(made)}
    assert done == {one.id: one.id for one in made}
    return ctx.job.id


async def scenario(app: Penstock) -> None:
    """Enqueue some of everything, cancel some of it, and wait for all."""
    chance = random.Random(runtime.random_bytes(8))
    jobs: list[Job] = []
    for _ in range(chance.randrange(3, 9)):
        match chance.randrange(9):
            case 0 | 1:
                batch = [{"seconds": chance.choice((0.0, 0.2, 1.0, 3.0))} for _ in range(3)]
                jobs += await app.enqueue_many("echo", batch)
            case 2:
                jobs.append(await app.enqueue("flaky", {"failures": chance.randrange(4)}))
            case 3:
                jobs.append(await app.enqueue("hopeless"))
                jobs.append(await app.enqueue("plain", delay=chance.uniform(0.0, 3.0)))
            case 4:
                seconds = chance.uniform(0.0, 0.6)
                jobs += [await app.enqueue("narrow", {"seconds": seconds}) for _ in range(4)]
            case 5:
                jobs.append(await app.enqueue("fan-out", {"width": chance.randrange(1, 12)}))
            case 6:
                jobs += [await app.enqueue("call") for _ in range(chance.randrange(1, 5))]
            case 7:
                jobs.append(await app.enqueue("parent", {"children": chance.randrange(1, 4)}))
            case 8:
                same = [app.enqueue("plain", key="only one") for _ in range(2)]
                jobs += await asyncio.gather(*same)
        if chance.random() < 0.2:
            await app.cancel(chance.choice(jobs).id)
        await asyncio.sleep(chance.uniform(0.0, 2.0))
    for job in jobs:
        await app.wait(job.id)


def check(jobs: list[Job]) -> None:
    assert receiver.most <= PARALLEL, f"{receiver.most} at once in a lane for {PARALLEL}"
    for job in jobs:
        assert job.state.finished, f"{job.kind} {job.id} is {job.state}"
        if job.state is JobState.COMPLETED:
            assert job.result == job.id, f"{job.kind} {job.id} has the result {job.result}"
        elif job.state is JobState.FAILED and job.kind != "hopeless":
            raise AssertionError(f"{job.kind} {job.id} failed: {job.error}")
