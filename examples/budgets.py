"""Budgets: a tenant that has spent its tokens pauses, others go on; raised, it goes on, too."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

LANES = {
    "llm": {"tokens_per_interval": 1_000_000, "interval_seconds": 60, "min_interval_seconds": 0.0}
}


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lanes=LANES)

    @app.job("summarise", lane="llm", amount=lambda payload: 1000)
    async def summarise(ctx: JobContext, page: int) -> None:
        ctx.lanes.used(input_tokens=700, output_tokens=100)  # less than was reserved

    async with app.running(max_workers=1):
        await app.budgets.set("tenant:acme", tokens=4000, per="day")
        acme = await app.enqueue_many("summarise", [{"page": n} for n in range(8)], tenant="acme")
        bolt = await app.enqueue_many("summarise", [{"page": n} for n in range(3)], tenant="bolt")
        for job in [*acme[:5], *bolt]:  # 5 times 800 tokens are 4000
            await app.wait(job.id, timeout=60)
        paused = await app.get(acme[-1].id)
        print(f"{paused.state.value}, {paused.attempts} attempts, waiting for {paused.waiting_for}")
        (before,) = await app.budgets.list()
        await app.budgets.set("tenant:acme", tokens=10_000, per="day")
        for job in acme:
            await app.wait(job.id, timeout=60)
        await app.drain(timeout=60)
        (after,) = await app.budgets.list()

    assert paused.attempts == 0
    assert "4,000 of 4,000 tokens spent this day" in str(paused.waiting_for)
    assert before.reached
    assert not after.reached


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
