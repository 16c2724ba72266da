"""An app that uses all that the engine has, and a scenario that the seed decides."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

from penstock import JobContext, JobState, Penstock, PermanentError, runtime
from penstock.errors import JobEnded, JobNotFound, WaitTimeout
from penstock.model.job import Job
from penstock.testing import crash
from penstock.testing.loop import SimulatedProcess, current
from penstock.testing.server import ServerQueue

NARROW, PARALLEL, INTERVAL = "narrow", 2, 0.05
RATE, RATE_SECONDS = 20, 0.5
"""Twenty starts take a second; a permit may be used half a second late."""
LANES = {
    NARROW: {"min_interval_seconds": INTERVAL, "max_parallel": PARALLEL},
    "api": {
        "min_interval_seconds": 0.02,
        "max_parallel": 4,
        "timeout_seconds": 2.0,
        "breaker_first_seconds": 0.5,
        "breaker_cap_seconds": 4.0,
    },
    "slow": {"min_interval_seconds": 0.05, "max_parallel": 5},
}
app = Penstock(
    "sqlite:///simulated.db",
    max_workers=3,
    lease_seconds=3.0,
    retry_base_seconds=0.1,
    retry_cap_seconds=2.0,
    job_timeout=10.0,
    upkeep_seconds=1.5,
    ageing_seconds=3.0,
    lanes=LANES,
)
POISON_RETRIES = 3
SIGNALS = 2
ENDLESS_SECONDS = 20.0
LOST_SECONDS = 4.0
"""Longer ago than what a failover of a server loses: who has sent a signal looks once more after
that, since a signal that was lost is sent again by nobody else."""


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

    def check_rate(self) -> None:
        """No more than the lane allows in any second, and what may start late."""
        starts = self.starts
        for first in range(len(starts) - RATE):
            seconds = starts[first + RATE] - starts[first]
            assert seconds > RATE_SECONDS, f"{RATE + 1} requests within {seconds:.2f} s"

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


@app.job("fan-out-of-100", timeout=60.0)
async def fan_out_of_100(ctx: JobContext) -> str:
    async def one() -> None:
        async with ctx.lanes.permit("slow"):
            await asyncio.sleep(0.05)

    await asyncio.gather(*(one() for _ in range(100)))
    return ctx.job.id


@app.job("call", lane="api", max_retries=20)
async def call(ctx: JobContext, patience: float | None = None) -> str:
    """Without patience it is told of the first 429, and leaves it to the lane."""
    answer = await ctx.http.get("http://api.example/thing", patience=patience)
    assert answer.json() == {}, "the service has lied"
    return ctx.job.id


@app.job("recorded", lane="api", max_retries=20)
async def recorded(ctx: JobContext) -> str:
    """Fails once over what it was answered, and asks anew."""
    same = [ctx.http.get("http://api.example/thing", record=True) for _ in range(2)]
    told = [answer.json() for answer in await asyncio.gather(*same)]
    await asyncio.sleep(0.1)
    if ctx.attempt == 1:
        raise ValueError(f"not yet: {told}")
    return ctx.job.id


@app.job("parent", timeout=60.0)
async def parent(ctx: JobContext, children: int, seconds: float = 0.05) -> str:
    made = [await ctx.enqueue("echo", {"seconds": seconds}) for _ in range(children)]
    done = {one.id: one.result async for one in ctx.finished(made)}
    assert done == {one.id: one.id for one in made}
    return ctx.job.id


@app.job("stepped", timeout=60.0, max_retries=8)
async def stepped(ctx: JobContext, pause: float) -> str:
    async def pay(what: str) -> str:
        await asyncio.sleep(0.05)
        return f"{what}: {runtime.random_bytes(4).hex()}"  # another receipt each time

    await ctx.step("pay", pay, "first")
    await ctx.sleep(pause)
    await asyncio.gather(*(ctx.step("pay", pay, what) for what in ("second", "third")))
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return ctx.job.id


@app.job("listener", timeout=60.0, max_retries=8)
async def listener(ctx: JobContext, patience: float) -> str:
    for number in range(SIGNALS):
        assert await ctx.wait_for("go") in range(SIGNALS + 1), number
    await ctx.wait_for("perhaps", timeout=patience)
    return ctx.job.id


@app.job("poison", max_retries=POISON_RETRIES)
async def poison(ctx: JobContext) -> str:
    await asyncio.sleep(0.02)
    crash()
    await asyncio.sleep(0.0)
    return "survived"


@app.job("tick", every=15.0)
async def tick(ctx: JobContext) -> str:
    return ctx.job.id


async def scenario(app: Penstock) -> None:
    """Enqueue some of everything, cancel some of it, and wait for all."""
    chance = random.Random(runtime.random_bytes(8))
    jobs: list[Job] = []
    for _ in range(chance.randrange(2, 6)):
        jobs += await _piece(app, chance)
        if jobs and chance.random() < 0.2:
            await _cancel(app, chance.choice(jobs))
        await asyncio.sleep(chance.uniform(0.0, 1.5))
    for job in jobs:
        with suppress(JobNotFound):  # by a failover; the model tells whether it may be
            await app.wait(job.id)


async def _cancel(app: Penstock, job: Job) -> None:
    with suppress(JobNotFound):  # as above
        await app.cancel(job.id)


async def _piece(app: Penstock, chance: random.Random) -> list[Job]:
    drawn = chance.randrange(89)
    match drawn if drawn < 3 else (drawn + 3) // 2:  # the first three are long, and rarer
        case 0:
            job = await app.enqueue("fan-out-of-100")
            if chance.random() < 0.5:
                await asyncio.sleep(chance.uniform(0.5, 4.0))
                await _cancel(app, job)
            return [job]
        case 1:
            return await _hostile(app)
        case 2:
            return await _endless(app)
        case 3 | 4:
            return await _family(app, chance)
        case 5 | 6:
            return [await app.enqueue("poison"), *await _echoes(app, chance)]
        case n if n < 13:
            return await _echoes(app, chance)
        case n if n < 16:
            return [await app.enqueue("flaky", {"failures": chance.randrange(4)})]
        case n if n < 19:
            late = await app.enqueue("plain", delay=chance.uniform(0.0, 3.0))
            return [late, await app.enqueue("hopeless")]
        case n if n < 23:
            seconds = chance.uniform(0.0, 0.6)
            return await app.enqueue_many("narrow", [{"seconds": seconds}] * 4)
        case n if n < 26:
            return [await app.enqueue("fan-out", {"width": chance.randrange(1, 12)})]
        case n if n < 29:
            return await app.enqueue_many("recorded", [{}] * 2)
        case n if n < 35:
            impatient = chance.choice(({}, {"patience": 0.0}))
            return await app.enqueue_many("call", [impatient] * chance.randrange(1, 8))
        case n if n < 37:
            return [await app.enqueue("parent", {"children": chance.randrange(1, 4)})]
        case n if n < 40:
            pause = chance.choice((0.1, 1.5, 4.0))
            return await app.enqueue_many("stepped", [{"pause": pause}] * 2)
        case n if n < 43:
            return [await _signalled(app, chance)]
        case _:
            same = [app.enqueue("plain", key="only one") for _ in range(2)]
            return list(await asyncio.gather(*same))


async def _echoes(app: Penstock, chance: random.Random) -> list[Job]:
    batch = [{"seconds": chance.choice((0.0, 0.2, 1.0, 3.0))} for _ in range(3)]
    tenant = chance.choice(("default", "second"))
    return await app.enqueue_many("echo", batch, tenant=tenant)


async def _hostile(app: Penstock) -> list[Job]:
    """One tenant fills the queue before another comes."""
    many = await app.enqueue_many("echo", [{"seconds": 0.1}] * 40, tenant="hostile")
    few = await app.enqueue_many("echo", [{"seconds": 0.1}] * 2, tenant="small")
    return [*many, *few]


async def _endless(app: Penstock) -> list[Job]:
    """There is always something of high priority to do."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ENDLESS_SECONDS
    jobs = await app.enqueue_many("echo", [{"seconds": 1.5}] * 12, priority="high")
    jobs.append(await app.enqueue("echo", {"seconds": 0.0}, priority="low"))
    while loop.time() < until:
        await asyncio.sleep(2.4)
        jobs += await app.enqueue_many("echo", [{"seconds": 1.5}] * 5, priority="high")
    return jobs


async def _signalled(app: Penstock, chance: random.Random) -> Job:
    """A job that is sent signals before it waits for them, while it does, and once more."""
    delay = chance.choice((0.0, 1.0))
    job = await app.enqueue("listener", {"patience": chance.choice((0.2, 3.0))}, delay=delay)
    names = ["perhaps"] * chance.randrange(2) + ["go"] * SIGNALS
    chance.shuffle(names)
    while True:  # again, as a failover may have taken them back
        for number, name in enumerate(names):
            try:
                await app.signal(job.id, name, number, key=f"{name} {number}")
            except JobNotFound:
                return job
            except JobEnded:
                break  # unless a failover takes that back, too
            await asyncio.sleep(chance.choice((0.0, 0.3, 2.0)))
        with suppress(WaitTimeout, JobNotFound):
            await app.wait(job.id, timeout=4.0)
            if isinstance(app.queue, ServerQueue):
                await asyncio.sleep(LOST_SECONDS)
            if (await app.get(job.id)).state.finished:
                return job


async def _family(app: Penstock, chance: random.Random) -> list[Job]:
    """A parent that is cancelled while its children wait, or run."""
    seconds = chance.choice((1.0, 4.0))
    family = await app.enqueue("parent", {"children": 6, "seconds": seconds})
    await asyncio.sleep(chance.uniform(0.0, 2.0))
    await _cancel(app, family)
    return [family]


def check(jobs: list[Job]) -> None:
    assert receiver.most <= PARALLEL, f"{receiver.most} at once in a lane for {PARALLEL}"
    receiver.check_rate()
    poisons = sum(job.kind == "poison" for job in jobs)
    for job in jobs:
        if job.kind == "tick":
            continue  # there is always a next one
        assert job.state.finished, f"{job.kind} {job.id} is {job.state}"
        if job.state is JobState.COMPLETED:
            assert job.result == job.id, f"{job.kind} {job.id} has the result {job.result}"
        elif job.state is JobState.FAILED and not _may_fail(job, poisons):
            raise AssertionError(f"{job.kind} {job.id} failed: {job.error}")


def _may_fail(job: Job, poisons: int) -> bool:
    if job.kind in ("hopeless", "poison"):
        return True
    error = "" if job.error is None else job.error["type"]
    if error == "WorkerLost":
        # Each poison takes its neighbours along once, before it is known, and a crash comes on top.
        return len([run for run in job.history if run.outcome == "lost"]) <= poisons + 1
    return job.kind == "call" and error in ("AssertionError", "JSONDecodeError")  # lied to
