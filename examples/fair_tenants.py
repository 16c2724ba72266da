"""Weights: a tenant with weight 3 gets three turns for one of the others; workers kept for high."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

ran: list[str] = []


async def turns(folder: str) -> None:
    # One at a time, so that the order shows. In penstock.yaml: tenant_weights: {gold: 3}
    app = Penstock(f"sqlite:///{folder}/turns.db", max_workers=1, tenant_weights={"gold": 3})

    @app.job("mail")
    async def mail(ctx: JobContext) -> None:
        ran.append(ctx.job.tenant)

    async with app:
        await app.enqueue_many("mail", [None] * 1000, tenant="bulk")
        await app.enqueue_many("mail", [None] * 30, tenant="gold")
        await app.enqueue_many("mail", [None] * 10, tenant="free")
        async with app.running():
            await app.drain(timeout=60)

    # Until gold is through, each round of five has three of gold and one of each other.
    rounds = [ran[n : n + 5] for n in range(0, 50, 5)]
    print(rounds[0])
    for one in rounds[:9]:
        assert sorted(one) == ["bulk", "free", "gold", "gold", "gold"]


async def kept_free(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/kept.db", max_workers=3, reserved_workers=1)
    begun, done = asyncio.Semaphore(0), asyncio.Event()

    @app.job("export")
    async def export(ctx: JobContext) -> None:
        begun.release()
        await done.wait()

    @app.job("preview")
    async def preview(ctx: JobContext) -> str:
        return "here"

    async with app.running() as orchestrator:
        await app.enqueue_many("export", [None] * 10, tenant="bulk")
        for _ in range(2):
            await begun.acquire()
        await asyncio.sleep(0.3)
        print("busy with exports:", orchestrator.status["busy"])  # two of three workers
        assert orchestrator.status["busy"] == 2
        job = await app.enqueue("preview", priority="high")
        assert (await app.wait(job.id, timeout=30)).result == "here"  # at once, in the third
        done.set()
        await app.drain(timeout=30)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(turns(folder))
        asyncio.run(kept_free(folder))
